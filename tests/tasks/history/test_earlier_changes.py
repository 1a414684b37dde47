"""Comparisons that know how far rows changed in earlier runs: their intervals, gates and words."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flows.config.gate_file import parse_gate
from flows.results.gated_comparison import CompareOptions, compare_runs
from metric_core.records import Score
from metric_core.stages import Stage
from metric_core.statistics.comparison import Difference
from metric_core.statistics.pairs import EarlierChanges
from tasks.comparison.run_comparison import RunComparison
from tasks.history.catalogue import Catalogue
from tasks.reports.comparison.comparison_document import comparison_markdown
from tests.tasks.reports import folders

ROWS = 60
METRICS = {"faithfulness": {"direction": "higher", "bounds": [0.0, 1.0]}}


class Evaluation:
    """Runs of an evaluation, each with noise of 0.05 around 0.6, in one history."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.history = folder, str(folder / "history.db")
        self.generator = np.random.default_rng(5)

    def run(
        self,
        day: int,
        scores: Sequence[float] | None = None,
        *,
        is_recorded: bool = True,
        index: str = "",
        system: str | None = None,
    ) -> Path:
        """Write the run of a day, and record it.

        Args:
            index: Version of the index that the run is about; empty for a scheduled run.
            system: Version of the system; None if it is not named.
        """
        values = np.round(0.6 + self.generator.uniform(-0.05, 0.05, ROWS), 3) if scores is None else scores
        cells = {f"row-{i:02}": {"faithfulness": Score.scored(float(value))} for i, value in enumerate(values)}
        samples = [{"row_id": name, "row_number": i + 1, "user_input": name} for i, name in enumerate(cells)]
        manifest = {
            "status": "completed",
            "created": f"2026-01-{day:02}T03:00:00+00:00",
            "run_id": f"run-{day}",
            "name": "support",
            "config": {"history": self.history, "system_version": system},
            "deployment": {"name": "support", "index": index and "handbook", "version": index},
        }
        folder = folders.write_run(self.folder / f"{day}", cells, {Stage.SAMPLES: samples}, METRICS, manifest)
        if is_recorded:
            Catalogue(self.history).record(folder)
        return folder


@pytest.fixture
def evaluation(tmp_path: Path) -> Evaluation:
    return Evaluation(tmp_path)


def compare(a: Path, b: Path, **gate: object) -> RunComparison:
    return compare_runs(a, b, CompareOptions(gate=parse_gate(gate, "the gate") if gate else None))


def difference(found: RunComparison) -> Difference:
    assert found.metrics[0].difference is not None
    return found.metrics[0].difference


def width(found: RunComparison) -> float:
    interval = difference(found).interval
    assert interval is not None
    return interval.high - interval.low


def test_small_changes_have_narrow_intervals_once_earlier_runs_show_no_larger_ones(evaluation: Evaluation) -> None:
    first = evaluation.run(1)
    second = evaluation.run(2)
    alone = compare(first, second)
    assert difference(alone).earlier is None
    assert "earlier runs" not in comparison_markdown(alone)
    for day in range(3, 8):
        evaluation.run(day)
    last = evaluation.run(8, [cell + 0.01 for cell in [0.6] * ROWS])
    later = compare(first, last)
    earlier = difference(later).earlier
    assert isinstance(earlier, EarlierChanges)
    assert earlier.runs == 6
    assert 5 * ROWS < earlier.rows <= 6 * ROWS  # some changes of a row are equal
    assert earlier.largest <= 0.1
    assert width(later) < 0.5 * width(alone)
    assert difference(later).detectable is not None
    assert "greatest change of a row in earlier runs, which the intervals take for" in comparison_markdown(later)


def test_runs_after_the_compared_one_and_those_of_other_histories_do_not_count(evaluation: Evaluation) -> None:
    first = evaluation.run(1)
    early = evaluation.run(2)
    for day in range(3, 6):
        evaluation.run(day)
    assert difference(compare(first, early)).earlier is None
    unknown = evaluation.run(6, is_recorded=False)
    assert difference(compare(first, unknown)).earlier is None
    Catalogue(evaluation.history).record(unknown)
    assert difference(compare(first, unknown)).earlier is not None


@pytest.mark.parametrize("changed", [{"index": "2"}, {"system": "2.0"}])
def test_runs_of_another_index_or_system_say_nothing_about_a_change_of_it(
    evaluation: Evaluation, changed: Mapping[str, Any]
) -> None:
    """One row in a hundred falls after a rebuild: no run before it had such a change."""
    first = evaluation.run(1)
    for day in range(2, 6):
        evaluation.run(day)
    assert difference(compare(first, evaluation.run(6))).earlier is not None
    rebuilt = evaluation.run(7, **changed)
    assert difference(compare(first, rebuilt)).earlier is None
    for day in (8, 9):  # runs on schedule do not name the version
        evaluation.run(day)
    last = evaluation.run(10)
    assert difference(compare(first, last)).earlier is None
    earlier = difference(compare(rebuilt, last)).earlier
    assert earlier is not None
    assert earlier.runs == 2


def test_a_cached_change_counts_once_and_a_large_one_is_not_forgotten(evaluation: Evaluation) -> None:
    first = evaluation.run(1, [0.6] * ROWS)
    changed = [0.65] * 10 + [0.6] * (ROWS - 10)
    for day in range(2, 6):
        evaluation.run(day, changed)
    earlier = difference(compare(first, evaluation.run(6, changed))).earlier
    assert earlier is not None
    assert (earlier.rows, earlier.largest) == (10, 0.05)
    evaluation.run(7, [*[0.0] * 3, *changed[3:]])
    earlier = difference(compare(first, evaluation.run(8, changed))).earlier
    assert earlier is not None
    assert (earlier.rows, earlier.largest) == (13, 0.6)


def test_a_gate_fails_by_earlier_runs_but_does_not_pass_by_them(evaluation: Evaluation) -> None:
    """All rows fell by 0.01 to 0.05: earlier runs show that none rose by much, not that none will fall by much."""
    first = evaluation.run(1, [0.6] * ROWS)
    for day in range(2, 8):
        evaluation.run(day)
    fallen = [0.57 - 0.02 * (-1) ** i for i in range(ROWS)]
    known, unknown = evaluation.run(8, fallen), evaluation.run(9, fallen, is_recorded=False)
    fails, passes = ({"regression": [{"max_drop": drop}]} for drop in (0.01, 0.06))
    for gate, outcomes in ((fails, ("inconclusive", "failed")), (passes, ("inconclusive", "inconclusive"))):
        found = tuple(compare(first, run, **gate).gate for run in (unknown, known))
        assert tuple(str(each.outcome) for each in found if each is not None) == outcomes
