"""Declare the options that select traces."""

import re
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from tasks.options.option import Flag, Option, OptionGroup
from tasks.options.text_forms import split_commas, table_from_text

_DURATION = re.compile(r"(?P<number>\d+)\s*(?P<unit>[mhdw])", re.ASCII)
_WHOLE = re.compile(r"\d+", re.ASCII)
_SHARE = re.compile(r"(?P<number>\d+\.?\d*|\.\d+)\s*(?P<percent>%?)", re.ASCII)
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def split_conditions(text: str) -> list[tuple[str, Any]]:
    """Return the pairs of `name=value,name=value`."""
    pairs = [part.partition("=") for part in split_commas(text)]
    if any(not equals for _, equals, _ in pairs):
        raise ValueError('expected name=value, comma-separated; other names and values as JSON, {"name": "a, b"}')
    return [(name.strip(), value.strip()) for name, _, value in pairs]


def parse_since(text: str, now: datetime) -> datetime:
    """Return the time that `since` names.

    >>> parse_since("24h", datetime(2026, 5, 2, tzinfo=UTC)).isoformat()
    '2026-05-01T00:00:00+00:00'

    Args:
        text: A date, a date and time (of UTC without an offset), or a duration back from now: 90m, 24h, 7d, 2w.

    Raises:
        ValueError: The text is neither.
    """
    if (found := _DURATION.fullmatch(text.strip())) is not None:
        return now - timedelta(**{_UNITS[found["unit"]]: int(found["number"])})
    try:
        time = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ValueError("expected a date (2026-05-01), a date and time, or a duration such as 24h or 7d") from None
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def _check_since(text: str) -> str:
    try:
        parse_since(text, datetime.now(UTC))
    except OverflowError:
        raise ValueError("the duration is too long") from None
    return text


def parse_sample(value: Any) -> Any:
    """Return a number of traces as an int, a share of them as a float between 0 and 1, and all of them as None.

    A number with a decimal point or a percent sign is a share, and one without is a number of traces.

    >>> parse_sample("1"), parse_sample("0.1"), parse_sample("10%"), parse_sample(1.0)
    (1, 0.1, 0.1, None)

    Raises:
        ValueError: The value is neither.
    """
    size = _as_number(value.strip()) if isinstance(value, str) else value
    if size is None or (isinstance(size, int) and not isinstance(size, bool) and size >= 1):
        return size
    if not isinstance(size, float) or not 0 < size <= 1:
        raise ValueError(
            "expected a number of traces, at least 1, without a decimal point (200), or a share of them above 0 and up "
            "to 1 (0.1 or 10%)"
        )
    return None if size == 1 else size


def _as_number(text: str) -> int | float | None:
    """Return the number that a text spells; NaN if it spells none."""
    if _WHOLE.fullmatch(text):
        return int(text)
    if (found := _SHARE.fullmatch(text)) is not None:
        return float(found["number"]) / (100 if found["percent"] else 1)
    return float("nan")


class TraceSettings(OptionGroup, affects_scores=True):
    """Options that select traces, in the order in which they are applied."""

    since: Annotated[
        Annotated[str, AfterValidator(_check_since)] | None,
        Option(
            "Only traces that began since then: a date, a date and time, or a duration back from now (24h, 7d).",
            holds="text",
            by_run=True,
            cli=Flag(long="--since", metavar="TIME|24h", help="Of traces: only those that began since then."),
            examples=["24h"],
        ),
    ] = None
    where: Annotated[
        Annotated[dict[str, Any], BeforeValidator(table_from_text(split_conditions))],
        Option(
            "Only traces with these values of attributes; of a list of values, any.",
            holds="text",
            by_run=True,
            cli=Flag(
                long="--where",
                metavar="NAME=VALUE,...",
                repeats=True,
                help="Of traces: only those with these attributes.",
            ),
            examples=[{"service.name": "prod"}],
        ),
    ] = Field(default_factory=dict)
    deduplicate: Annotated[
        Literal["off", "question", "content"],
        Option(
            "Leave out traces that repeat an earlier question, or an earlier question with its answer and passages.",
            by_run=True,
            cli=Flag(
                long="--deduplicate",
                metavar="question|content",
                help="Of traces: leave out repeated questions, or questions with all their texts.",
            ),
        ),
    ] = "off"
    sample: Annotated[
        Annotated[int | float | None, BeforeValidator(parse_sample, json_schema_input_type=int | float | str)] | None,
        Option(
            "Only so many traces (200), or a share of them (0.1, 10%; 1.0 is all, 1 is one), chosen by their ids: new "
            "traces hardly change it.",
            by_run=True,
            cli=Flag(
                long="--sample",
                metavar="N|SHARE",
                help="Of traces: a random sample, so many (200) or a share (0.1, 10%), stable as traces are added.",
            ),
            examples=[200],
        ),
    ] = None
    seed: Annotated[int, Option("Another number chooses another sample.", by_run=True, ge=0)] = 0


class TraceOptions(OptionGroup, affects_scores=True):
    """The option that says which traces are read."""

    traces: Annotated[
        TraceSettings | None,
        Option("Which traces of a source `traces:PATH` are read.", examples=[{"since": "24h", "sample": 200}]),
    ] = None
