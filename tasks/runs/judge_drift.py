"""Watch judges by anchor rows that are asked about again: choose the rows of a night, and tell when a judge changed.

What a night found is an entry in run.json, which the history keeps, and from which the next nights go on. The entry of
a judge has the distance of each row that was asked about (`distances`), the rows with another verdict (`changed`), the
earlier distances of each row that do not belong to the nights that are tested together (`earlier`: how many, their sum,
and how many had another verdict), the e-value of the night, and `told`, if the judge answers otherwise.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np

from metric_core.statistics.alarms import NIGHTS_ADDED, AlarmSettings, find_step
from metric_core.statistics.asked_again import (
    FULL_NIGHTS,
    MOST_EARLIER,
    NIGHTS,
    count_rows,
    has_returned,
    is_changed,
    log_e_value,
)
from tasks.runs.run_folder import ANCHOR

ASKED_AGAIN = "asked_again"
"""Name of the entry of a night in the entry of the anchor in run.json."""
NIGHTS_READ = NIGHTS + NIGHTS_ADDED
"""Number of nights whose entries are needed to go on."""

Earlier = dict[str, list[float]]


@dataclass(frozen=True, slots=True)
class PastRepeat:
    """A night that asked about anchor rows again.

    Args:
        entry: Content of the entry `asked_again` of its anchor.
    """

    start: datetime
    entry: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RepeatTurn:
    """The rows that a night asks about again.

    Args:
        start: Start of the run.
        reference: Digest of the judges and the anchor, of which nights are compared.
        night: Number of the night among those with the same reference, from 1.
        number: Number of the run among those of its calendar year that asked again, from 1.
        next: Place in the order of all rows at which the next night starts.
        power: Probability with which a change of the expected size is told within a week.
        past: The nights before it with the same reference, oldest first.
    """

    start: datetime
    reference: str
    night: int
    number: int
    rows: tuple[str, ...]
    next: int
    power: float
    past: tuple[PastRepeat, ...]

    def entry(self) -> dict[str, Any]:
        """Return what the next night needs to know."""
        names = ("reference", "night", "number", "next")
        return {"year": _year(self.start), **{name: getattr(self, name) for name in names}, "power": self.power}


@dataclass(frozen=True, slots=True)
class RowAnswers:
    """The answers of a judge about a row, compared with the kept ones.

    Args:
        distance: Mean distance of the answers, from 0 to 1.
        is_changed: True if any verdict is another one.
    """

    distance: float
    is_changed: bool


@dataclass(frozen=True, slots=True)
class JudgeDriftDetector:
    """Looks for judges that answer otherwise than they did.

    Args:
        drift: Share of the verdicts whose change is to be seen.
    """

    drift: float
    settings: AlarmSettings = field(default_factory=AlarmSettings)

    def choose_turn(
        self,
        rows: Sequence[str],
        reference: str,
        start: datetime,
        past: Sequence[PastRepeat],
        *,
        restart: bool = False,
    ) -> RepeatTurn:
        """Return the rows that a night asks about again: all in the first nights, then some in turn.

        Args:
            rows: Ids of the rows of the anchor, at least one.
            reference: Digest of the judges and the anchor.
            past: Nights before it, oldest first, whatever their reference.
            restart: True if the kept answers are new.
        """
        count, power = count_rows(self.drift, len(rows), self.settings.nights)
        same = () if restart else tuple(_with_reference(past, reference))
        night = 1 + (same[-1].entry["night"] if same else 0)
        before = past[-1].entry if past else {}
        number = 1 + (before["number"] if before.get("year") == _year(start) else 0)
        if night <= FULL_NIGHTS:
            return RepeatTurn(start, reference, night, number, tuple(rows), 0, power, same)
        first = same[-1].entry["next"]
        order = sorted(rows, key=lambda row: hashlib.sha256(f"{reference} {row}".encode()).digest())
        chosen = tuple(order[(first + place) % len(order)] for place in range(min(count, len(order))))
        return RepeatTurn(start, reference, night, number, chosen, (first + len(chosen)) % len(order), power, same)

    def entry(
        self, turn: RepeatTurn, judge: str, answers: Mapping[str, RowAnswers], *, judges: int = 1, place: str = ""
    ) -> dict[str, Any]:
        """Return the entry of a judge for a night.

        Args:
            judge: Name of the judge, unique in the run.
            answers: Row -> answers of the night; rows without usable answers are absent.
            judges: Number of judges that are watched.
            place: Address of the judge; empty if it has none.
        """
        past = [(night.start, found) for night in turn.past if (found := _entry_of(night, judge)) is not None]
        last = past[-1][1] if past else None
        entry: dict[str, Any] = {
            "judge": judge,
            "distances": {row: round(found.distance, 2) for row, found in answers.items()},
            "changed": [row for row, found in answers.items() if found.is_changed],
            "told": None if last is None else last["told"],
            "has_returned": False,
        }
        nights = [*past, (turn.start, entry)]
        tested = 1 if turn.night <= FULL_NIGHTS else min(NIGHTS, turn.night - FULL_NIGHTS)
        left = _left(nights, turn.night)
        entry["earlier"] = _add_earlier({} if last is None else last["earlier"], left, entry["told"])
        window = [found for _, found in nights[-tested:]]
        entry["log_e_value"] = _test(window, entry["earlier"])
        if entry["told"] is None:
            evidence = [found["log_e_value"] for _, found in nights]
            if is_changed(evidence, turn.number, judges, self.settings):
                entry["told"] = _tell(judge, place, nights, entry["earlier"])
        elif _is_whole_week_since(nights, entry["told"]):
            usual = _usual(entry["earlier"])[0]
            entry["has_returned"] = has_returned(_mean_distance(window) - usual, self.drift)
        return entry


def read_findings(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a night found; empty if it asked nothing again.

    Args:
        content: Content of run.json, or what the history keeps of it.
    """
    return (content.get(ANCHOR) or {}).get(ASKED_AGAIN) or {}


def standing_changes(entry: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the judges that answer otherwise after a night, with the finding, under `judge` and `told`.

    Args:
        entry: Entry of the night.
    """
    judges = entry.get("judges") or ()
    return [
        {"judge": each["judge"], "told": each["told"]}
        for each in judges
        if each["told"] is not None and not each.get("has_returned")
    ]


def _with_reference(past: Sequence[PastRepeat], reference: str) -> list[PastRepeat]:
    """Return the last nights with a reference, back to the one that started with it."""
    found: list[PastRepeat] = []
    for night in reversed(past):
        if night.entry["reference"] != reference or any(each["has_returned"] for each in night.entry["judges"]):
            break
        found.insert(0, night)
        if night.entry["night"] == 1:
            break
    return found


def _entry_of(night: PastRepeat, judge: str) -> Mapping[str, Any] | None:
    return next((each for each in night.entry["judges"] if each["judge"] == judge), None)


def _left(nights: Sequence[tuple[datetime, Mapping[str, Any]]], night: int) -> Mapping[str, Any] | None:
    """Return the night that belongs to the earlier ones since tonight; None if there is no such night."""
    back = 1 if night <= FULL_NIGHTS + 1 else NIGHTS
    is_tested = FULL_NIGHTS + 1 < night <= FULL_NIGHTS + NIGHTS
    return None if is_tested or back >= len(nights) else nights[-1 - back][1]


def _add_earlier(earlier: Mapping[str, Sequence[float]], left: Mapping[str, Any] | None, told: Any) -> Earlier:
    """Return the earlier distances with those of a night, unless the judge answers otherwise by now."""
    result = {row: list(found) for row, found in earlier.items()}
    if left is None or told is not None:
        return result
    for row, distance in left["distances"].items():
        count, total, changed = result.get(row, [0, 0.0, 0])
        if count < MOST_EARLIER:
            result[row] = [count + 1, round(total + distance, 2), changed + (row in left["changed"])]
    return result


def _test(window: Sequence[Mapping[str, Any]], earlier: Mapping[str, Sequence[float]]) -> float:
    found: dict[str, list[float]] = {}
    for night in window:
        for row, distance in night["distances"].items():
            if row in earlier:
                found.setdefault(row, []).append(distance)
    return log_e_value(
        [sum(values) / len(values) for values in found.values()],
        [len(values) for values in found.values()],
        [earlier[row][1] / earlier[row][0] for row in found],
        [int(earlier[row][0]) for row in found],
    )


def _usual(earlier: Mapping[str, Sequence[float]]) -> tuple[float, float]:
    """Return the mean distance of earlier nights, and the share of rows with another verdict."""
    count = sum(found[0] for found in earlier.values()) or 1
    return sum(found[1] for found in earlier.values()) / count, sum(found[2] for found in earlier.values()) / count


def _mean_distance(nights: Iterable[Mapping[str, Any]]) -> float:
    values = [distance for night in nights for distance in night["distances"].values()]
    return sum(values) / len(values) if values else 0.0


def _tell(
    judge: str, place: str, nights: Sequence[tuple[datetime, Mapping[str, Any]]], earlier: Mapping[str, Sequence[float]]
) -> dict[str, Any]:
    usual, usually_changed = _usual(earlier)
    recent = nights[-NIGHTS_ADDED:]
    means = np.array([_mean_distance([found]) if found["distances"] else np.nan for _, found in recent])
    first = find_step(usual - means)
    since = recent[first:]
    rows = sum(len(found["distances"]) for _, found in since)
    changed = sum(len(found["changed"]) for _, found in since)
    found = _describe(rows, changed, round(usually_changed * rows), _mean_distance(each for _, each in since), usual)
    name, new = (f"{judge} at {place}", "a revision (judge.server.revision)") if place else (judge, "another name")
    sentence = (
        f"the judge {name} answers otherwise under the same name since {since[0][0]:%A, %-d %B}: {found}. Cached "
        f"answers are those of the judge as it was: give the new one {new}, which asks everything again, or bring the "
        "old one back"
    )
    return {
        "since": since[0][0].isoformat(),
        "told": nights[-1][0].isoformat(),
        "rows": rows,
        "changed": changed,
        "sentence": sentence,
    }


def _describe(rows: int, changed: int, usually_changed: int, distance: float, usual: float) -> str:
    """Return how the answers differ.

    >>> _describe(30, 9, 1, 0.28, 0.02)
    '9 of 30 anchor rows asked again got another verdict, 1 is usual'
    >>> _describe(30, 0, 0, 0.15, 0.01)
    'the probabilities of 30 anchor rows asked again differ by 0.15 on average, 0.01 is usual'
    """
    if changed > usually_changed:
        is_usual = "1 is" if usually_changed == 1 else f"{usually_changed} are" if usually_changed else "none is"
        return f"{changed} of {rows} anchor rows asked again got another verdict, {is_usual} usual"
    return (
        f"the probabilities of {rows} anchor rows asked again differ by {distance:.2f} on average, {usual:.2f} is usual"
    )


def _is_whole_week_since(nights: Sequence[tuple[datetime, Mapping[str, Any]]], told: Mapping[str, Any]) -> bool:
    return len(nights) > NIGHTS and nights[-NIGHTS][0] > datetime.fromisoformat(told["told"])


def _year(start: datetime) -> int:
    return start.astimezone(UTC).year
