"""Choose the questions of a judge's certificate, and decide from the verdicts which planted changes moved them wrongly.

A judge that is unsure of some claims decides otherwise after any change of the text, which is no fault of one change.
So a change is named only if it moves more verdicts than the other changes do together (one-sided exact test of Fisher),
and one that misleads in a direction only if the moved verdicts have one (exact binomial test). Changes that must move a
verdict are named if they leave more than a tolerated share, more than what idle changes move, and more than the other
such changes leave, or than half; repetitions if more than a tolerated share moves. All tests together name a change of
a judge without faults in at most 5 of 100 certificates (Holm).
"""

import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from metric_core.calibration.calibrate import Figure
from metric_core.calibration.planted_changes import (
    CHANGES,
    LATER,
    REPEATED,
    CheckedClaim,
    Direction,
    Effect,
    PlantedChange,
)
from metric_core.statistics.bounded_means import LEAST_UNITS, BoundedMean, Bounds, estimate_interval
from metric_core.statistics.paired_tests import holm
from metric_core.statistics.resampling import SEED, Units

TOLERATED_REPETITIONS = 0.05
"""Share of verdicts that may differ when the same question is asked again."""

TOLERATED_UNMOVED = 0.1
"""Share of verdicts that a change may leave although it must move them: a rule may miss what a claim is about."""

_BLIND = 0.5
"""Share of verdicts from which a change that leaves them is a fault even if the others leave as many."""
_REPETITIONS = frozenset({REPEATED.name, LATER.name})

LEVEL = 0.05
"""Share of certificates of faultless judges that name a change."""

_UNIT = Bounds(0.0, 1.0)


@dataclass(frozen=True, slots=True)
class JudgedClaim:
    """A claim of a run, with its verdict.

    Args:
        row: Id of its row.
        verdict: 1 if the passages support the claim, else 0.
    """

    row: str
    checked: CheckedClaim
    verdict: int


@dataclass(frozen=True, slots=True)
class PlantedQuestion:
    """A question of a certificate.

    Args:
        judged: The claim before the change.
        changed: The texts to ask about.
    """

    change: PlantedChange
    judged: JudgedClaim
    changed: CheckedClaim


@dataclass(frozen=True, slots=True)
class Moved:
    """The verdict before and after a change, compared.

    Args:
        change: Name of the change.
        row: Id of the row that the claim is from.
        moved: True if the verdict is another one.
        was: Verdict before the change, 1 if the passages support the claim, else 0.
    """

    change: str
    row: str
    moved: bool
    was: int


@dataclass(frozen=True, slots=True)
class ChangeFinding:
    """The verdicts of one planted change.

    Args:
        change: Name of the change.
        effect: Required effect of the change on a verdict.
        asked: Number of verdicts.
        wrong: Number of verdicts that moved although they must not, or did not although they must.
        share: Their share, with its interval.
        p: P-value of "the judge has no such fault", adjusted for all changes of the certificate.
        is_fault: True if the certificate names the change.
    """

    change: str
    effect: Effect
    asked: int
    wrong: int
    share: Figure
    p: float
    is_fault: bool


@dataclass(frozen=True, slots=True)
class CheckResult:
    """Result of a certificate.

    Args:
        findings: One per change with a verdict, in order of display.
        flips: Share of the verdicts that moved although they must not, over all such changes; its interval takes the
            verdicts on claims of one row together.
        asked: Number of these verdicts.
    """

    findings: tuple[ChangeFinding, ...]
    flips: Figure
    asked: int


def choose_questions(claims: Sequence[JudgedClaim], budget: int, *, is_fixed: bool) -> list[PlantedQuestion]:
    """Choose claims for the changes, as many for each.

    No change has two claims of a row. Half of the claims of a change that must not move a verdict are supported ones,
    if there are as many; of a change that must, all are. Rows are shared by changes only where there are too few.

    Args:
        claims: Claims of a run, in random order.
        budget: Largest number of questions; a repetition takes two.
        is_fixed: True for a judge that answers the same question always alike, which is not asked again.
    """
    changes = [change for change in CHANGES if not (is_fixed and change.change is None)]
    quota = budget // (len(changes) + (REPEATED in changes))
    left = {
        change.name: [each for each in claims if each.verdict or change.effect is Effect.NONE] for change in changes
    }
    uses: Counter[str] = Counter()
    chosen = []
    for turn in range(quota):
        for change in changes:
            if (question := _choose(change, left[change.name], uses, turn % 2)) is not None:
                uses[question.judged.row] += 1
                chosen.append(question)
    return chosen


def _choose(change: PlantedChange, left: list[JudgedClaim], uses: Counter[str], wanted: int) -> PlantedQuestion | None:
    """Return a question about the least used row that the change applies to, and remove the row from those left.

    Args:
        wanted: Verdict that the claim should have.
    """
    while left:
        best = min(left, key=lambda each: (each.verdict != wanted, uses[each.row]))
        changed = change.apply(best.checked)
        left[:] = [each for each in left if (each is not best if changed is None else each.row != best.row)]
        if changed is not None:
            return PlantedQuestion(change, best, changed)
    return None


def assess(moved: Sequence[Moved], supported: float) -> CheckResult:
    """Decide which planted changes a judge is misled by, or does not notice.

    Args:
        moved: Verdicts, at least one of which must not have moved.
        supported: Share of the claims of the run that the judge calls supported.
    """
    by_change: dict[str, list[Moved]] = {}
    for each in moved:
        by_change.setdefault(each.change, []).append(each)
    changes = [change for change in CHANGES if change.name in by_change]
    wrong = {
        change.name: [each.moved is (change.effect is Effect.NONE) for each in by_change[change.name]]
        for change in changes
    }
    idle = {change.name for change in changes if change.effect is Effect.NONE and change.change is not None}
    adjusted = holm([_p(change, wrong, idle) for change in changes])
    found = [change for change, p in zip(changes, adjusted, strict=True) if change.direction and p <= LEVEL]
    directed = {
        change.name: min(1.0, len(found) * _p_direction(change.direction, by_change[change.name], supported))
        for change in found
    }
    ps = [max(p, directed.get(change.name, 0.0)) for change, p in zip(changes, adjusted, strict=True)]
    findings = tuple(
        ChangeFinding(
            change=change.name,
            effect=change.effect,
            asked=len(wrong[change.name]),
            wrong=sum(wrong[change.name]),
            share=_share(wrong[change.name], [each.row for each in by_change[change.name]]),
            p=p,
            is_fault=p <= LEVEL,
        )
        for change, p in zip(changes, ps, strict=True)
    )
    steady = [each for change in changes if change.effect is Effect.NONE for each in by_change[change.name]]
    return CheckResult(findings, _share([each.moved for each in steady], [each.row for each in steady]), len(steady))


def _p(change: PlantedChange, wrong: Mapping[str, Sequence[bool]], idle: Collection[str]) -> float:
    """Return the p-value of "no fault".

    Args:
        wrong: Name of a change -> whether each of its verdicts is wrong.
        idle: Names of the changes of a text that must not move a verdict.
    """
    own = wrong[change.name]
    if len(own) < LEAST_UNITS:
        return 1.0
    others = [each for name in idle if name != change.name for each in wrong[name]]
    if change.name in idle:
        return p_more_often(sum(own), len(own), sum(others), len(others))
    if change.effect is Effect.NONE:
        return _p_tolerated(own, TOLERATED_REPETITIONS, change.name)
    as_idle = p_more_often(sum(own), len(own), sum(others), len(others))
    alike = [each for name in wrong.keys() - idle - {change.name} - _REPETITIONS for each in wrong[name]]
    blind = min(p_more_often(sum(own), len(own), sum(alike), len(alike)), _p_tolerated(own, _BLIND, change.name))
    return max(_p_tolerated(own, TOLERATED_UNMOVED, change.name), as_idle, blind)


def _p_tolerated(wrong: Sequence[bool], tolerated: float, name: str) -> float:
    return BoundedMean(_units(wrong), _UNIT, SEED, name).p_at_most(tolerated)


def _p_direction(direction: Direction | None, verdicts: Sequence[Moved], supported: float) -> float:
    """Return the p-value of "the judge says yes as often as before".

    If it does, as many verdicts of the run would move to yes as to no. The chosen claims have other numbers of verdicts
    of either kind than the run.
    """
    yes = sum(each.was for each in verdicts)
    if not 0 < supported < 1 or not 0 < yes < len(verdicts):
        return 1.0
    to_yes, to_no = (len(verdicts) - yes) / (1 - supported), yes / supported
    share = to_yes / (to_yes + to_no)
    moved = [each.was == 0 for each in verdicts if each.moved]
    size, count = len(moved), sum(moved)
    chances = [math.comb(size, k) * share**k * (1 - share) ** (size - k) for k in range(size + 1)]
    more, less = sum(chances[count:]), sum(chances[: count + 1])
    return more if direction is Direction.YES else min(1.0, 2 * min(more, less))


def _share(wrong: Sequence[bool], rows: Sequence[str]) -> Figure:
    return Figure(float(np.mean(wrong)), estimate_interval(_units(wrong, rows), _UNIT, SEED))


def _units(wrong: Sequence[bool], rows: Sequence[str] | None = None) -> Units:
    return Units.from_values(np.array(wrong, dtype=np.float64), rows)


def p_more_often(count: int, of: int, other: int, of_others: int) -> float:
    """Return the p-value of "not more frequent than among the others": the one-sided exact test of Fisher.

    >>> round(p_more_often(5, 21, 0, 42), 4), p_more_often(0, 21, 0, 42)
    (0.0029, 1.0)
    """
    total, ways = count + other, math.comb(of + of_others, count + other)
    as_many = range(count, min(total, of) + 1)
    return sum(math.comb(of, k) * math.comb(of_others, total - k) for k in as_many) / ways
