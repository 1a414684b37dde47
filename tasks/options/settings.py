"""Define the base class of everything that flows and stages receive as a parameter."""

from pydantic import BaseModel, ConfigDict


class Settings(BaseModel):
    """Base of all settings: immutable, and an unknown key is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    def __hash__(self) -> int:
        """Return a hash of the content; its fields alone may be unhashable."""
        return hash(self.model_dump_json())
