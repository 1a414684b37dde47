"""Choose the questions of a judge's certificate, and decide from the verdicts which planted changes moved them wrongly.

A change that must not move a verdict is named if it moves more verdicts than asking again does: the one-sided exact
test of Fisher on the numbers of moved verdicts. A judge in this process answers every repetition alike, which is known
without asking. Repetitions, and changes that must move a verdict, are named if more than a tolerated share of the
verdicts is wrong (exact binomial test). All tests of a certificate together name one of a judge without any in at most
5 of 100 certificates (Holm).
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from metric_core.calibration.calibrate import Figure
from metric_core.calibration.planted_changes import CHANGES, LATER, REPEATED, CheckedClaim, Effect, PlantedChange
from metric_core.statistics.bounded_means import LEAST_UNITS, BoundedMean, Bounds, estimate_interval
from metric_core.statistics.paired_tests import holm
from metric_core.statistics.resampling import SEED, Units

TOLERATED_REPETITIONS = 0.05
"""Share of verdicts that may differ when the same question is asked again."""

TOLERATED_UNMOVED = 0.1
"""Share of verdicts that a change may leave although it must move them: a rule may miss what a claim is about."""

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
    """

    change: str
    row: str
    moved: bool


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


def assess(moved: Sequence[Moved]) -> CheckResult:
    """Decide which planted changes a judge is misled by, or does not notice.

    Args:
        moved: Verdicts, at least one of which must not have moved.
    """
    by_change: dict[str, list[Moved]] = {}
    for each in moved:
        by_change.setdefault(each.change, []).append(each)
    changes = [change for change in CHANGES if change.name in by_change]
    again = [each.moved for change in (REPEATED, LATER) for each in by_change.get(change.name, ())]
    wrong = {
        change.name: [each.moved is (change.effect is Effect.NONE) for each in by_change[change.name]]
        for change in changes
    }
    adjusted = holm([_p(change, wrong[change.name], again) for change in changes])
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
        for change, p in zip(changes, adjusted, strict=True)
    )
    steady = [each for change in changes if change.effect is Effect.NONE for each in by_change[change.name]]
    return CheckResult(findings, _share([each.moved for each in steady], [each.row for each in steady]), len(steady))


def _p(change: PlantedChange, wrong: Sequence[bool], again: Sequence[bool]) -> float:
    if len(wrong) < LEAST_UNITS:
        return 1.0
    if change.change is not None and change.effect is Effect.NONE:
        # Without repetitions the judge is in this process: two of each question would have the same verdict.
        repetitions = len(again) or 2 * len(wrong)
        return p_more_often(sum(wrong), len(wrong), sum(again), repetitions)
    tolerated = TOLERATED_REPETITIONS if change.effect is Effect.NONE else TOLERATED_UNMOVED
    return BoundedMean(_units(wrong), _UNIT, SEED, change.name).p_at_most(tolerated)


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
