"""Detect changed judges by anchor rows that are asked about again: choose the rows of a run, and test the answers.

A *repeat* is a run that asks about anchor rows again. The history keeps the record of it, from which later repeats
continue.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TypeAlias

import numpy as np

from metric_core.statistics.alarms import RUNS_ADDED, AlarmSettings, find_step
from metric_core.statistics.asked_again import (
    FULL_RUNS,
    MOST_EARLIER,
    RUNS_TESTED,
    count_rows,
    has_returned,
    is_changed,
    log_e_value,
)
from tasks.findings.repeats.repeat_record import AskedAgain, JudgeChange, JudgeRepeat

RUNS_READ = RUNS_TESTED + RUNS_ADDED
"""Number of repeats whose entries are needed to continue."""

_LEAST_STEADY = 3
"""Rows whose verdicts had never changed that a judge with one answer for everything must have changed at least."""

Earlier: TypeAlias = Mapping[str, tuple[int, float, int]]
_Repeats: TypeAlias = Sequence[tuple[datetime, JudgeRepeat]]
"""The repeats of a judge, oldest first, each with its start."""


@dataclass(frozen=True, slots=True)
class PastRepeat:
    """A run that asked about anchor rows again, and what it found."""

    start: datetime
    found: AskedAgain


@dataclass(frozen=True, slots=True)
class RepeatTurn:
    """The rows that a run asks about again.

    Args:
        start: Start of the run.
        reference: Digest of the judges and the anchor; only repeats with the same digest are compared.
        repeat: Number of the repeat among those with the same reference, from 1.
        number: Number of the run among those of its calendar year that asked again, from 1.
        next: Place in the order of all rows at which the next repeat starts.
        power: Probability with which a change of the expected size is reported within `RUNS_TESTED` repeats.
        past: Earlier repeats with the same reference, oldest first.
    """

    start: datetime
    reference: str
    repeat: int
    number: int
    rows: tuple[str, ...]
    next: int
    power: float
    past: tuple[PastRepeat, ...]

    def to_record(self) -> AskedAgain:
        """Return what the next repeat needs to know."""
        return AskedAgain(
            year=_year(self.start),
            reference=self.reference,
            repeat=self.repeat,
            number=self.number,
            next=self.next,
            power=self.power,
        )


@dataclass(frozen=True, slots=True)
class RowAnswers:
    """The answers of a judge about a row, compared with the kept ones.

    Args:
        distance: Mean distance of the answers, from 0 to 1.
        is_changed: True if any verdict is different.
    """

    distance: float
    is_changed: bool


@dataclass(frozen=True, slots=True)
class JudgeDriftDetector:
    """Detects judges that answer differently than before.

    Args:
        drift: Share of changed verdicts that should be detected.
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
        """Return the rows that a run asks about again: all in the first repeats, then some in turn.

        Args:
            rows: Ids of the rows of the anchor, at least one.
            reference: Digest of the judges and the anchor.
            past: Earlier repeats, oldest first, whatever their reference.
            restart: True if the kept answers are new.
        """
        count, power = count_rows(self.drift, len(rows), self.settings.runs)
        same = () if restart else tuple(_with_reference(past, reference))
        repeat = 1 + (same[-1].found.repeat if same else 0)
        before = past[-1].found if past else AskedAgain()
        number = 1 + (before.number if before.year == _year(start) else 0)
        if repeat <= FULL_RUNS:
            return RepeatTurn(start, reference, repeat, number, tuple(rows), 0, power, same)
        first = same[-1].found.next
        order = shuffle_rows(rows, f"{reference} ")
        chosen = tuple(order[(first + place) % len(order)] for place in range(min(count, len(order))))
        return RepeatTurn(start, reference, repeat, number, chosen, (first + len(chosen)) % len(order), power, same)

    def repeat(  # noqa: PLR0913 what is known of the judge
        self,
        turn: RepeatTurn,
        judge: str,
        answers: Mapping[str, RowAnswers],
        *,
        judges: int = 1,
        place: str = "",
        uniform: str = "",
    ) -> JudgeRepeat:
        """Return what a repeat found of a judge.

        Args:
            judge: Name of the judge, unique in the run.
            answers: Row -> answers of the repeat; rows without usable answers are absent.
            judges: Number of judges that are tested.
            place: Address of the judge; empty if it has none.
            uniform: Sentence on new answers that are all the same, though the kept ones are not; empty if they are not.
        """
        past = [(each.start, found) for each in turn.past if (found := _repeat_of(each, judge)) is not None]
        last = past[-1][1] if past else JudgeRepeat(judge=judge)
        new = JudgeRepeat(
            judge=judge,
            distances={row: round(found.distance, 2) for row, found in answers.items()},
            changed=tuple(row for row, found in answers.items() if found.is_changed),
            change=last.change,
            has_returned=False,
        )
        repeats = [*past, (turn.start, new)]
        tested = 1 if turn.repeat <= FULL_RUNS else min(RUNS_TESTED, turn.repeat - FULL_RUNS)
        earlier = _add_earlier(last.earlier, _leaving_window(repeats, turn.repeat), new.change)
        window = [found for _, found in repeats[-tested:]]
        new = new.extend(earlier=earlier, log_e_value=_test(window, earlier))
        if new.change is None:
            evidence = [*(found.log_e_value for _, found in past), new.log_e_value]
            steady = [row for row in new.changed if earlier.get(row, (0, 0.0, 1))[2] == 0]
            if uniform and len(steady) >= _LEAST_STEADY:
                return new.extend(change=_describe_uniform(judge, place, repeats, uniform))
            if is_changed(evidence, turn.number, judges, self.settings):
                return new.extend(change=_describe_change(judge, place, repeats, earlier))
        elif _is_window_since(repeats, new.change):
            usual = _usual(earlier)[0]
            return new.extend(has_returned=has_returned(_mean_distance(window) - usual, self.drift))
        return new


def shuffle_rows(rows: Iterable[str], seed: str = "") -> list[str]:
    """Return rows in an order that depends on their ids alone, so that the first ones are a sample.

    Args:
        seed: Another text gives another order.

    >>> shuffle_rows(["a", "b", "c"]), shuffle_rows(["c", "b", "a"], "x")
    (['c', 'b', 'a'], ['c', 'a', 'b'])
    """
    return sorted(rows, key=lambda row: hashlib.sha256(f"{seed}{row}".encode()).digest())


def find_changed_judges(found: AskedAgain | None) -> tuple[JudgeRepeat, ...]:
    """Return the judges that have changed by a repeat and have not returned."""
    judges = () if found is None else found.judges
    return tuple(each for each in judges if each.change is not None and not each.has_returned)


def _with_reference(past: Sequence[PastRepeat], reference: str) -> list[PastRepeat]:
    """Return the last repeats with a reference, back to the one that started with it."""
    found: list[PastRepeat] = []
    for repeat in reversed(past):
        if repeat.found.reference != reference or any(each.has_returned for each in repeat.found.judges):
            break
        found.insert(0, repeat)
        if repeat.found.repeat == 1:
            break
    return found


def _repeat_of(repeat: PastRepeat, judge: str) -> JudgeRepeat | None:
    return next((each for each in repeat.found.judges if each.judge == judge), None)


def _leaving_window(repeats: _Repeats, number: int) -> JudgeRepeat | None:
    """Return the repeat that counts as an earlier one from this one on; None if there is none.

    Args:
        number: Number of this repeat, from 1.
    """
    back = 1 if number <= FULL_RUNS + 1 else RUNS_TESTED
    is_tested = FULL_RUNS + 1 < number <= FULL_RUNS + RUNS_TESTED
    return None if is_tested or back >= len(repeats) else repeats[-1 - back][1]


def _add_earlier(earlier: Earlier, left: JudgeRepeat | None, change: JudgeChange | None) -> Earlier:
    """Return the earlier distances with those of a repeat, unless the judge has changed by now."""
    result = dict(earlier)
    if left is None or change is not None:
        return result
    for row, distance in left.distances.items():
        count, total, changed = result.get(row, (0, 0.0, 0))
        if count < MOST_EARLIER:
            result[row] = (count + 1, round(total + distance, 2), changed + (row in left.changed))
    return result


def _test(window: Sequence[JudgeRepeat], earlier: Earlier) -> float:
    found: dict[str, list[float]] = {}
    for each in window:
        for row, distance in each.distances.items():
            if row in earlier:
                found.setdefault(row, []).append(distance)
    return log_e_value(
        [sum(values) / len(values) for values in found.values()],
        [len(values) for values in found.values()],
        [earlier[row][1] / earlier[row][0] for row in found],
        [earlier[row][0] for row in found],
    )


def _usual(earlier: Earlier) -> tuple[float, float]:
    """Return the mean distance of earlier repeats, and the share of rows with another verdict."""
    count = sum(found[0] for found in earlier.values()) or 1
    return sum(found[1] for found in earlier.values()) / count, sum(found[2] for found in earlier.values()) / count


def _mean_distance(repeats: Iterable[JudgeRepeat]) -> float:
    values = [distance for each in repeats for distance in each.distances.values()]
    return sum(values) / len(values) if values else 0.0


def _describe_change(
    judge: str,
    place: str,
    repeats: _Repeats,
    earlier: Earlier,
) -> JudgeChange:
    usual, usually_changed = _usual(earlier)
    recent = repeats[-RUNS_ADDED:]
    means = np.array([_mean_distance([found]) if found.distances else np.nan for _, found in recent])
    first = find_step(usual - means)
    since = recent[first:]
    rows = sum(len(found.distances) for _, found in since)
    changed = sum(len(found.changed) for _, found in since)
    found = _describe(rows, changed, round(usually_changed * rows), _mean_distance(each for _, each in since), usual)
    name, new = (f"{judge} at {place}", "a revision (judge.server.revision)") if place else (judge, "another name")
    sentence = (
        f"the judge {name} answers differently under the same name since {since[0][0]:%A, %-d %B}: {found}. Cached "
        f"answers are those of the judge as it was: give the new one {new}, which asks everything again, or bring the "
        "old one back"
    )
    return JudgeChange(
        since=since[0][0].isoformat(),
        raised=repeats[-1][0].isoformat(),
        rows=rows,
        changed=changed,
        sentence=sentence,
    )


def _describe_uniform(judge: str, place: str, repeats: _Repeats, uniform: str) -> JudgeChange:
    start, found = repeats[-1]
    return JudgeChange(
        since=start.isoformat(),
        raised=start.isoformat(),
        rows=len(found.distances),
        changed=len(found.changed),
        sentence=(
            f"the judge {f'{judge} at {place}' if place else judge} answers everything alike since {start:%A, %-d %B}: "
            f"{uniform}. Scores of this run say nothing about the system: look at the server of the judge"
        ),
    )


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


def _is_window_since(repeats: _Repeats, change: JudgeChange) -> bool:
    """Return whether all repeats that are tested together are later than a finding."""
    return len(repeats) > RUNS_TESTED and repeats[-RUNS_TESTED][0] > datetime.fromisoformat(change.raised)


def _year(start: datetime) -> int:
    return start.astimezone(UTC).year
