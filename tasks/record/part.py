"""Base of the types that a record consists of."""

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer


class Part(BaseModel):
    """A part of the record of a run: an object of its JSON, with the entries that are named and no others."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    def extend(self, **entries: Any) -> Self:
        """Return the part with further entries, or others."""
        return type(self)(**self.entries | entries)

    @property
    def entries(self) -> dict[str, Any]:
        """The entries that were set, by name."""
        return {name: getattr(self, name) for name in self.model_fields_set}

    def to_json(self) -> dict[str, Any]:
        """Return the JSON object, without entries that were never set."""
        return self.model_dump(mode="json")

    @model_serializer(mode="wrap")
    def _leave_out_unset(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in handler(self).items() if name in self.model_fields_set}
