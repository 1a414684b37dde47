"""Narrow a configuration to the settings of one stage or model."""

from typing import Any, TypeVar

from pydantic import BaseModel

S = TypeVar("S", bound=BaseModel)


def narrow(source: BaseModel, settings: type[S], /, **values: Any) -> S:
    """Return settings that take each field from the source's field of the same name.

    Args:
        source: The configuration, or settings to narrow further.
        settings: Class of the settings.
        values: Values of fields that the source lacks, or has with another meaning; they take precedence.

    Raises:
        ValidationError: A given field is unknown to the class, a required one is missing, or a value does not fit.

    >>> class Configuration(BaseModel):
    ...     workers: int = 4
    ...     limit: int | None = 10
    >>> class Reading(BaseModel):
    ...     limit: int | None = None
    ...     path: str
    >>> narrow(Configuration(), Reading, path="rows.jsonl")
    Reading(limit=10, path='rows.jsonl')
    """
    shared = type(source).model_fields.keys() & settings.model_fields.keys()
    return settings(**{name: getattr(source, name) for name in shared} | values)
