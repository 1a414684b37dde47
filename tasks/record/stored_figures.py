"""Figures with their intervals, and names of judges, as files and records store them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

from pydantic import BeforeValidator, PlainSerializer, TypeAdapter, WithJsonSchema

from metric_core.calibration.calibrate import Figure

_END = {"type": ["number", "null"]}
_SCHEMA = {"type": "object", "properties": {"value": {"type": "number"}, "low": _END, "high": _END}}


def figure_to_dict(figure: Figure) -> dict[str, float | None]:
    """Return the entry of a figure in a file: its value and the ends of its interval."""
    low, high = (None, None) if figure.interval is None else (figure.interval.low, figure.interval.high)
    return {"value": figure.value, "low": low, "high": high}


def _nest_interval(entry: Any) -> Any:
    if not isinstance(entry, Mapping):
        return entry
    ends = {end: entry.get(end) for end in ("low", "high")}
    return {"value": entry.get("value"), "interval": None if None in ends.values() else ends}


# A file has the ends of the interval beside the value.
StoredFigure: TypeAlias = Annotated[
    Figure, BeforeValidator(_nest_interval), PlainSerializer(figure_to_dict), WithJsonSchema(_SCHEMA)
]
_FIGURE: TypeAdapter[Figure] = TypeAdapter(StoredFigure)


def parse_figure(entry: Mapping[str, Any]) -> Figure:
    """Return a figure from its entry in a file.

    >>> parse_figure({"value": 0.5, "low": 0.25, "high": 0.75})
    Figure(value=0.5, interval=Interval(low=0.25, high=0.75))
    >>> parse_figure({"value": 0.5})
    Figure(value=0.5, interval=None)
    """
    return _FIGURE.validate_python(entry)


@dataclass(frozen=True, slots=True)
class JudgeName:
    """The name of a judge, for readers; the fingerprint identifies it for programs."""

    backend: str
    model: str
    revision: str

    def __str__(self) -> str:
        """Return model and revision."""
        return " ".join(filter(None, (self.model, self.revision)))
