"""Attribution of changes to system, judge, both, or unknown; with errors measured in simulated worlds."""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest

from metric_core.statistics.attribution import LEAST_ANCHOR_ROWS, Attribution, Cause, ScoreChanges, attribute_change

_CLAIMS = 4


@dataclass(frozen=True)
class World:
    """Texts of four claims each.

    Args:
        drop: Share of the supported claims that the system no longer supports.
        stricter: Share of its yes that another judge no longer gives; None for the same judge.
        turned: Share of the verdicts that another judge turns round, either way.
        anchor_rows: Number of anchor rows, 60 % of which are good answers; 90 % of the system's are.
    """

    drop: float = 0.0
    stricter: float | None = None
    turned: float = 0.03
    anchor_rows: int = 200

    def attribute(self, seed: int, rows: int = 500) -> Attribution:
        """Attribute the change of one night."""
        draw = np.random.default_rng(seed)
        texts, anchor = _texts(draw, rows, 0.9), _texts(draw, self.anchor_rows, 0.6)
        tonight = texts & (draw.random(texts.shape) >= self.drop)
        return attribute_change(
            _changes(texts, self._judge(draw, tonight)),
            _changes(anchor, self._judge(draw, anchor)),
            judge_differs=self.stricter is not None,
        )

    def _judge(self, draw: np.random.Generator, texts: np.ndarray) -> np.ndarray:
        if self.stricter is None:
            return texts
        turned = np.where(draw.random(texts.shape) < self.turned, ~texts, texts)
        return turned & (draw.random(texts.shape) >= self.stricter)


def _texts(draw: np.random.Generator, rows: int, good: float) -> np.ndarray:
    quality = np.where(draw.random(rows) < good, 0.97, 0.4)
    return draw.random((rows, _CLAIMS)) < quality[:, None]


def _changes(before: np.ndarray, after: np.ndarray) -> ScoreChanges:
    old, new = before.mean(axis=1), after.mean(axis=1)
    return ScoreChanges(new - old, old)


@pytest.mark.parametrize(
    ("world", "cause", "least"),
    [
        (World(drop=0.06), Cause.SYSTEM, 1.0),
        (World(stricter=0.06), Cause.JUDGE, 0.95),
        (World(stricter=0.1, anchor_rows=100), Cause.JUDGE, 0.95),
        (World(drop=0.12, stricter=0.0, turned=0.01), Cause.SYSTEM, 0.8),
        (World(drop=0.15, stricter=0.12), Cause.BOTH, 0.3),
    ],
    ids=["system", "judge", "judge, small anchor", "system, another judge that is as strict", "both"],
)
def test_the_cause_is_named(world: World, cause: Cause, least: float) -> None:
    causes = Counter(world.attribute(seed).cause for seed in range(200))

    assert causes[cause] >= least * 200, causes
    wrong = 200 - causes[cause] - causes[Cause.UNKNOWN]
    assert wrong <= 0.05 * 200, causes


def test_the_effect_of_a_judge_depends_on_the_scores_that_it_meets() -> None:
    """A judge that takes a tenth of the good rows away takes 0.09 from a good system, and 0.05 from a mixed anchor."""
    anchor_before, rows_before = np.repeat([1.0, 0.0], 100), np.repeat([1.0, 0.0], [450, 50])
    anchor, rows = (
        ScoreChanges(np.where((np.arange(len(before)) % 10 == 0) & (before == 1), -1.0, 0.0), before)
        for before in (anchor_before, rows_before)
    )

    found = attribute_change(rows, anchor, judge_differs=True)

    assert found.cause is Cause.JUDGE
    assert found.judge is not None
    assert found.judge.mean == pytest.approx(-0.09)
    assert found.system is not None
    assert found.system.mean == pytest.approx(0.0)
    without = attribute_change(ScoreChanges(rows.changes), ScoreChanges(anchor.changes), judge_differs=True)
    assert without.judge is not None
    assert without.judge.mean == pytest.approx(-0.05)


def test_a_milder_judge_is_not_why_scores_fell() -> None:
    anchor, rows = ScoreChanges(np.repeat([0.5, 0.0], 50)), ScoreChanges(np.repeat([-0.5, 0.0], 250))

    found = attribute_change(rows, anchor, judge_differs=True)

    assert found.cause is Cause.SYSTEM
    assert found.system is not None
    assert found.system.mean == pytest.approx(-0.5)


def test_a_small_part_is_not_a_cause() -> None:
    anchor = ScoreChanges(np.where(np.arange(5000) % 50 == 0, -0.1, 0.0))
    rows = ScoreChanges(np.where(np.arange(5000) % 10 == 0, -1.0, 0.0))

    assert attribute_change(rows, anchor, judge_differs=True).cause is Cause.SYSTEM


def test_a_judge_that_changed_behind_its_name_is_named() -> None:
    changed = ScoreChanges(np.repeat([-0.5, 0.0], 50))

    found = attribute_change(changed, changed, judge_differs=False)

    assert found.cause is Cause.JUDGE
    assert "50 of 100 anchor rows have another score" in found.reason


def test_groups_of_rows_are_drawn_together() -> None:
    """Two hundred anchor rows of five documents say little more than five rows."""
    draw = np.random.default_rng(1)
    of_documents = np.repeat(draw.choice([0.0, -0.3], 6), 40)
    names = [str(number // 40) for number in range(240)]
    rows = ScoreChanges(np.repeat([-0.3, 0.0], 250))

    alone = attribute_change(rows, ScoreChanges(of_documents), judge_differs=True)
    grouped = attribute_change(rows, ScoreChanges(of_documents, groups=names), judge_differs=True)

    assert alone.judge is not None
    assert grouped.judge is not None
    assert grouped.judge.high - grouped.judge.low > 3 * (alone.judge.high - alone.judge.low)


_FELL = ScoreChanges(np.repeat([-0.5, 0.0], 50))
_SAME = ScoreChanges(np.zeros(100))


@pytest.mark.parametrize(
    ("anchor", "differs", "reason"),
    [
        (None, True, "the judge has another fingerprint, and there is no anchor"),
        (None, None, "whether the judge has the same fingerprint is not known, and there is no anchor"),
        (None, False, "same fingerprint, but there is no anchor to show that its server still answers the same"),
        (ScoreChanges(np.empty(0)), True, "no anchor row has a score in both runs"),
        (ScoreChanges(np.zeros(19)), True, f"score in both runs; {LEAST_ANCHOR_ROWS} are needed"),
        (ScoreChanges(np.repeat([-1.0, 1.0, 0.0], 8)), True, "which does not decide"),
    ],
)
def test_an_unknown_cause_says_why(anchor: ScoreChanges | None, differs: bool | None, reason: str) -> None:
    found = attribute_change(_FELL, anchor, judge_differs=differs)

    assert found.cause is Cause.UNKNOWN
    assert reason in found.reason


@pytest.mark.parametrize(("anchor", "in_process"), [(_SAME, False), (_SAME, True), (None, True)])
def test_the_same_judge_is_not_the_cause(anchor: ScoreChanges | None, in_process: bool) -> None:
    found = attribute_change(_FELL, anchor, judge_differs=False, runs_in_process=in_process)

    assert found.cause is Cause.SYSTEM
    assert found.judge is not None
    assert found.judge.mean == 0


def test_scores_that_did_not_change_have_no_cause() -> None:
    assert attribute_change(_SAME, _SAME, judge_differs=True).reason == "the mean score did not change"
    with pytest.raises(ValueError, match="got no rows"):
        attribute_change(ScoreChanges(np.empty(0)), _SAME, judge_differs=True)
    with pytest.raises(ValueError, match="got 2 scores before of 1 rows"):
        ScoreChanges(np.zeros(1), np.zeros(2))


def test_scores_that_are_better_when_lower_are_turned() -> None:
    changes = ScoreChanges.from_scores({"x": 0.2, "y": 0.1}, {"x": 0.5, "y": 0.1}, sign=-1)

    assert changes.changes.tolist() == [-0.3, 0.0]
    assert changes.before is not None
    assert changes.before.tolist() == [-0.2, -0.1]
