"""Compare what the pages of histories show with what the script itself saw: runs, scores, incidents, heartbeats."""

import json
import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, TypeAlias

from benchmarks.month.ledger import Entry
from benchmarks.month.receivers import Message

Kind: TypeAlias = Literal["finished", "failed", "missed"]
KINDS: tuple[Kind, ...] = ("finished", "failed", "missed")

_NOT_IN_HISTORY = ("missed runs", "stuck", "error: not reported", "history", "error")
"""Keys of what the Prefect server tells, of a damaged history, and of events that belong to no evaluation."""

_WITHOUT_RESULT = ("not judged", "too few scores")
"""Outcomes of runs that ended, and have no result."""

_SLACK = timedelta(seconds=2)
"""Times on a page are in whole seconds."""

_DATA = re.compile(r'<script type="application/json" id="history-data">(.*?)</script>', re.DOTALL)
_WEEK = re.compile(
    r"last 7 days: (?P<finished>\d+) of (?P<due>\d+) [^,]*, (?P<failed>\d+) failed, (?P<missed>\d+) missed"
)
_METRIC = "faithfulness"


@dataclass(frozen=True, slots=True)
class SeenRun:
    """A run as the script saw it.

    Args:
        begun: Start of the run; of a missed one the time at which it was due.
        ended: End of the run.
        mean: Mean that its scores must have; None if that is not known.
        beats: Number of heartbeats that it must have sent; None if any number is right.
    """

    kind: Kind
    begun: datetime
    ended: datetime
    mean: float | None = None
    beats: int | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """The figures on the page of a history.

    Args:
        times: Times of the runs, oldest first.
        kinds: Kinds of the runs.
        means: Means of the metric; None where there is none.
        incidents: Runs that opened and that ended each incident; None for one that is open.
        due: Runs of the schedule in the last seven days: due, finished, failed, missed; empty without a schedule.
    """

    times: tuple[datetime, ...]
    kinds: tuple[Kind, ...]
    means: tuple[float | None, ...]
    incidents: tuple[tuple[int, int | None], ...]
    due: tuple[int, ...] = ()


def read_page(text: str) -> Page:
    """Return the figures of a page."""
    found, week = _DATA.search(text), _WEEK.search(text)
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    numbers = range(len(data["time"]))
    columns = (each["mean"] for each in data["metrics"] if each["key"] == _METRIC)
    means: list[int | None] = next(columns, [None for _ in numbers])
    return Page(
        times=tuple(datetime.fromtimestamp(time, UTC) for time in data["time"]),
        kinds=tuple(_kind(data, number) for number in numbers),
        means=tuple(None if mean is None else mean / data["scale"] for mean in means),
        incidents=tuple((each["opened"], each["closed"]) for each in data["incidents"]),
        due=() if week is None else tuple(int(week[name]) for name in ("due", *KINDS)),
    )


def compare_page(
    page: Page, runs: Sequence[SeenRun], incidents: Iterable[tuple[datetime, datetime | None]]
) -> list[str]:
    """Return in which figures a page differs from what the script saw.

    Args:
        runs: All runs of the evaluation.
        incidents: Times at which incidents were found and found over; None for one that is open.
    """
    return [*_compare_runs(page, runs), *_compare_incidents(page, incidents)]


def incidents_of(messages: Iterable[Message], entries: Sequence[Entry]) -> list[tuple[datetime, datetime | None]]:
    """Return the incidents that messages to one recipient tell of, and those that a silence held back."""
    begun: dict[str, datetime] = {}
    found: list[tuple[datetime, datetime | None]] = []
    for message in sorted(messages, key=lambda each: each.found):
        for key, change in message.changes:
            if key.partition("/")[2] in _NOT_IN_HISTORY:
                continue
            if change == "opened":
                begun.setdefault(key, message.found)
            elif change in ("resolved", "replaced") and key in begun:
                found.append((begun.pop(key), message.found))
    found += ((time, None) for time in begun.values())
    silenced = [each.ended for each in entries if each.is_silenced and each.ended is not None]
    return [*found, *zip(silenced[::2], silenced[1::2], strict=True)]


def check_beats(runs: Iterable[SeenRun], beats: Sequence[datetime]) -> Iterator[str]:
    """Yield the runs that have called the heartbeat monitor too often, or not often enough.

    A run calls it when it ends, so a beat belongs to the run that ends next: one that was resumed may be older.
    """
    ordered = sorted(runs, key=lambda run: run.ended)
    ends = [run.ended + _SLACK for run in ordered]
    counts = Counter(bisect_left(ends, beat) for beat in beats)
    for place, run in enumerate(ordered):
        if run.beats not in (None, counts[place]):
            yield f"the run of {run.begun:%H:%M:%S} sent {counts[place]} heartbeats, not {run.beats}"


def check_escalations(entries: Iterable[Entry], messages: Iterable[Message]) -> Iterator[str]:
    """Yield the difference between what could not be delivered and what was escalated."""
    wanted = sum(each.change == "opened" for entry in entries if not entry.is_reachable for each in entry.expected)
    told = sum(change == "opened" for each in messages if each.by == "escalation" for _, change in each.changes)
    if told != wanted:
        yield f"{told} incidents were escalated, and {wanted} were not delivered"


def due_dates(first: datetime, last: datetime, minutes: Iterable[int]) -> list[datetime]:
    """Return the dates of a schedule from one date to another.

    Args:
        minutes: Minutes of the hour at which a run is due.
    """
    wanted = frozenset(minutes)
    count = int((last - first) / timedelta(minutes=1))
    dates = (first + timedelta(minutes=number) for number in range(count + 1))
    return [date for date in dates if date.minute in wanted]


def _kind(data: dict[str, Any], number: int) -> Kind:
    if data["absent"].get(str(number)) == 2:
        return "missed"
    has_result = not any(words in data["outcome"].get(str(number), "") for words in _WITHOUT_RESULT)
    return "finished" if data["ended"][number] and has_result else "failed"


def _compare_runs(page: Page, runs: Sequence[SeenRun]) -> Iterator[str]:
    shown, seen = Counter(page.kinds), Counter(run.kind for run in runs)
    if shown != seen:
        yield f"{_counts(shown)} on the page, {_counts(seen)} seen"
    if page.due and page.due != (len(runs), *(seen[kind] for kind in KINDS)):
        yield f"availability of {page.due} on the page, {_counts(seen)} seen"
    for run in runs:
        places = [
            place
            for place, time in enumerate(page.times)
            if page.kinds[place] == "finished" and run.begun - _SLACK <= time <= run.ended
        ]
        if run.kind != "finished":
            continue
        means = [page.means[place] for place in places]
        if not places:
            yield f"the run of {run.begun:%H:%M:%S} is not on the page"
        elif run.mean is not None and round(run.mean, 4) not in means:
            yield f"the run of {run.begun:%H:%M:%S} has the mean {means[0]}, not {run.mean:.4f}"


def _compare_incidents(page: Page, incidents: Iterable[tuple[datetime, datetime | None]]) -> Iterator[str]:
    places = [place for place, kind in enumerate(page.kinds) if kind != "missed"]
    times = [page.times[place] for place in places]

    def place_of(time: datetime) -> int:
        return places[bisect_right(times, time) - 1]

    seen = Counter((place_of(begun), None if ended is None else place_of(ended)) for begun, ended in incidents)
    shown = Counter(page.incidents)
    for (opened, closed), count in sorted((shown - seen).items(), key=str):
        yield f"{count} incidents from run {opened} to {closed} are on the page, and were not told so"
    for (opened, closed), count in sorted((seen - shown).items(), key=str):
        yield f"{count} incidents from run {opened} to {closed} were told, and are not so on the page"


def _counts(kinds: Counter[Kind]) -> str:
    return ", ".join(f"{kinds[kind]} {kind}" for kind in KINDS)
