"""Put alarms into words, and read and write them as entries of outcome.json."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError

from metric_core.errors import RunFolderError
from metric_core.statistics.alarms import Alarm
from metric_core.statistics.resampling import Interval
from metric_core.statistics.run_panel import Stream
from metric_core.statistics.slices import Slice
from tasks.record.outcome import Cause, OutcomeAlarm

_CAUSES: Mapping[Cause, str] = {
    "system": "the system changed",
    "judge": "the judge changed",
    "unknown": "it is not known whether the system or the judge changed",
}
_REGAINED = "this run has regained more than half of it, and another such run ends the alarm"


def alarm_sentence(alarm: Alarm, cause: Cause | None = None, reason: str = "") -> str:
    """Return an alarm in words.

    Args:
        cause: Cause of the change; None if it was not looked for.
        reason: Sentence on why this is the cause.

    >>> alarm = Alarm(
    ...     stream=Stream("faithfulness", Slice("language", "de")),
    ...     since=datetime(2025, 11, 18),
    ...     raised=datetime(2025, 11, 20),
    ...     drop=0.062,
    ...     interval=Interval(0.038, 0.094),
    ...     rows=480,
    ...     runs=3,
    ... )
    >>> alarm_sentence(alarm)
    'faithfulness of language de: worse since Tuesday, 18 November; down 0.04 to 0.09'
    >>> alarm_sentence(alarm, "system")
    'faithfulness of language de: worse since Tuesday, 18 November; down 0.04 to 0.09; the system changed'
    """
    metric, part = alarm.stream.metric, alarm.stream.slice
    subject = metric if part is None else f"{metric} of {part}"
    way = "up" if alarm.lower_is_better else "down"
    size = (
        format_ratios(alarm.interval, is_up=alarm.lower_is_better) if alarm.is_ratio else format_sizes(alarm.interval)
    )
    since = f"since {format_day(alarm.since, alarm.raised)}"
    words = f"{subject}: worse {since}; {way} {size}"
    if alarm.rows < alarm.baseline_rows:
        words = f"{words}, in {alarm.rows} of the {alarm.baseline_rows} rows of the baseline"
    if alarm.groups:
        words = f"{words}, on average over {alarm.groups} groups of rows"
    if cause is not None:
        words = f"{words}; {_CAUSES[cause]}{f' ({reason})' if reason else ''}"
    return f"{words}; {_REGAINED}" if alarm.is_regained else words


def format_day(day: datetime, today: datetime) -> str:
    """Return a day in words, with its year if that is another one than today's.

    >>> format_day(datetime(2025, 11, 18), datetime(2025, 12, 24))
    'Tuesday, 18 November'
    >>> format_day(datetime(2025, 11, 18), datetime(2026, 1, 2))
    'Tuesday, 18 November 2025'
    """
    words = f"{day:%A}, {day.day} {day:%B}"
    return words if day.year == today.year else f"{words} {day.year}"


def format_sizes(interval: Interval) -> str:
    """Return the limits of a size, with two or three decimals.

    >>> format_sizes(Interval(0.038, 0.094)), format_sizes(Interval(0.0031, 0.0082)), format_sizes(Interval(0.0, 0.06))
    ('0.04 to 0.09', '0.003 to 0.008', 'by up to 0.06')
    """
    if interval.low < 0.0005:
        return f"by up to {interval.high:.2f}"
    decimals = 2 if interval.low >= 0.005 else 3
    return f"{interval.low:.{decimals}f} to {interval.high:.{decimals}f}"


def format_ratios(interval: Interval, *, is_up: bool) -> str:
    """Return the limits of a ratio to the baseline in words.

    Args:
        interval: Decimal logarithms, above 0 if it became worse.
        is_up: True if it became worse by rising.

    >>> format_ratios(Interval(0.1, 0.4), is_up=True), format_ratios(Interval(0.1, 0.4), is_up=False)
    ('by a factor of 1.3 to 2.5', 'by a factor of 0.40 to 0.79')
    >>> format_ratios(Interval(0.0, 0.4), is_up=True)
    'by a factor of up to 2.5'
    """
    low, high = 10**interval.low, 10**interval.high
    if not is_up:
        return f"by a factor of {1 / high:.2f} to {1 / low:.2f}"
    return f"by a factor of {low:.1f} to {high:.1f}" if low >= 1.05 else f"by a factor of up to {high:.1f}"


def outcome_alarm(alarm: Alarm, cause: Cause | None = None, reason: str = "") -> OutcomeAlarm:
    """Return an alarm as an entry of outcome.json.

    Args:
        cause: Cause of the change; None if it was not looked for.
        reason: Sentence on why this is the cause.
    """
    part = alarm.stream.slice
    return OutcomeAlarm(
        metric=alarm.stream.metric,
        slice=None if part is None else {part.column: part.value},
        since=alarm.since.date(),
        drop=(alarm.interval.low, alarm.interval.high),
        cause=cause,
        reason=reason,
        sentence=alarm_sentence(alarm, cause, reason),
        is_regained=alarm.is_regained,
        rows=(alarm.rows, alarm.baseline_rows),
    )


class _OpenAlarm(BaseModel, frozen=True, extra="ignore"):
    metric: str
    slice: tuple[str, str] | None = None
    since: datetime
    raised: datetime
    drop: float
    low: float
    high: float
    rows: int
    runs: int
    lower_is_better: bool = False
    is_ratio: bool = False
    baseline_rows: int = 0
    groups: int = 0


_STATE = TypeAdapter(list[_OpenAlarm])
_ALARMS = "alarms"


def write_alarm_state(alarms: Sequence[Alarm]) -> dict[str, Any]:
    """Return the open alarms as JSON, for the next run."""
    state = [
        _OpenAlarm(
            metric=alarm.stream.metric,
            slice=None if alarm.stream.slice is None else (alarm.stream.slice.column, alarm.stream.slice.value),
            since=alarm.since,
            raised=alarm.raised,
            drop=alarm.drop,
            low=alarm.interval.low,
            high=alarm.interval.high,
            rows=alarm.rows,
            runs=alarm.runs,
            lower_is_better=alarm.lower_is_better,
            is_ratio=alarm.is_ratio,
            baseline_rows=alarm.baseline_rows,
            groups=alarm.groups,
        )
        for alarm in alarms
    ]
    return {_ALARMS: _STATE.dump_python(state, mode="json")}


def read_alarm_state(state: Mapping[str, object]) -> list[Alarm]:
    """Return the alarms that were open after the previous run.

    Args:
        state: JSON content that `write_alarm_state` returned; empty for the first run.

    Raises:
        RunFolderError: The content is damaged.

    >>> read_alarm_state({}), read_alarm_state(write_alarm_state([]))
    ([], [])
    """
    try:
        opened = _STATE.validate_python(state.get(_ALARMS, []))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise RunFolderError(
            f"the alarms of the run before cannot be read: {first['msg']} at {'.'.join(map(str, first['loc']))}. "
            "Remove alarm_state from its outcome.json, and alarms are raised again."
        ) from error
    return [
        Alarm(
            stream=Stream(entry.metric, None if entry.slice is None else Slice(*entry.slice)),
            since=entry.since,
            raised=entry.raised,
            drop=entry.drop,
            interval=Interval(entry.low, entry.high),
            rows=entry.rows,
            runs=entry.runs,
            lower_is_better=entry.lower_is_better,
            is_ratio=entry.is_ratio,
            is_new=False,
            baseline_rows=entry.baseline_rows,
            groups=entry.groups,
        )
        for entry in opened
    ]
