"""Comparisons that read the runs before the baseline: which runs count, and the words about them."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from flows.results.gated_comparison import CompareOptions, compare_runs
from metric_core.records import Score
from metric_core.stages import Stage
from metric_core.statistics.comparison import Difference
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
        verdict: str = "binary",
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
            "config": {"history": self.history, "system_version": system, "verdict": verdict},
            "deployment": {"name": "support", "index": index and "handbook", "version": index},
        }
        folder = folders.write_run(self.folder / f"{day}", cells, {Stage.SAMPLES: samples}, METRICS, manifest)
        if is_recorded:
            Catalogue(self.history).record(folder)
        return folder

    def runs(self, *days: int) -> list[Path]:
        return [self.run(day) for day in days]


@pytest.fixture
def evaluation(tmp_path: Path) -> Evaluation:
    return Evaluation(tmp_path)


def compare(a: Path, b: Path) -> RunComparison:
    return compare_runs(a, b, CompareOptions())


def difference(a: Path, b: Path) -> Difference:
    found = compare(a, b).metrics[0].difference
    assert found is not None
    return found


def earlier_runs(a: Path, b: Path) -> int:
    found = difference(a, b).earlier
    return 0 if found is None else found.runs


def test_the_runs_before_the_baseline_narrow_the_interval_and_the_comparison_says_what_it_assumes(
    evaluation: Evaluation,
) -> None:
    nights = evaluation.runs(*range(1, 13))
    first = comparison_markdown(compare(nights[0], nights[1]))
    assert "assumed: nothing moves all rows of a run at once, as a busy server" in first
    assert earlier_runs(nights[0], nights[1]) == 0
    assert earlier_runs(nights[10], nights[11]) == 9, "at most nine"
    text = comparison_markdown(compare(nights[10], nights[11]))
    assert "assumed: only chance tells A from the 9 runs before it" in text
    alone, known = (difference(*run).interval for run in (nights[:2], nights[10:]))
    assert alone is not None
    assert known is not None
    assert known.high - known.low < alone.high - alone.low


def test_noise_of_whole_runs_is_named(evaluation: Evaluation) -> None:
    shifts = (0.0, 0.05, -0.04, 0.03, -0.05, 0.0, 0.04, -0.03)
    nights = [
        evaluation.run(day, [0.6 + shift + 0.02 * (-1) ** (row + day) for row in range(ROWS)])
        for day, shift in enumerate(shifts, start=1)
    ]
    text = comparison_markdown(compare(nights[-2], nights[-1]))
    assert "the runs before A moved by more than their rows explain (faithfulness by 0.0" in text


def test_runs_after_the_baseline_and_those_of_other_histories_do_not_count(evaluation: Evaluation) -> None:
    first, second, third = evaluation.runs(1, 2, 3)
    evaluation.runs(4)
    assert earlier_runs(second, third) == 1
    assert earlier_runs(first, third) == 0
    unknown = evaluation.run(6, is_recorded=False)
    assert earlier_runs(third, unknown) == 0
    Catalogue(evaluation.history).record(unknown)
    assert earlier_runs(third, unknown) == 2


@pytest.mark.parametrize("changed", [{"index": "2"}, {"system": "2.0"}])
def test_no_run_is_read_across_another_version_of_the_index_or_of_the_system(
    evaluation: Evaluation, changed: Mapping[str, Any]
) -> None:
    """One row in a hundred falls after a rebuild: no run before it had such a change."""
    nights = evaluation.runs(*range(1, 7))
    assert earlier_runs(nights[-2], nights[-1]) == 4
    rebuilt = evaluation.run(7, **changed)
    assert earlier_runs(nights[-1], rebuilt) == 0
    later = evaluation.runs(8, 9)  # runs on schedule do not name the version
    assert earlier_runs(rebuilt, later[0]) == 0
    assert earlier_runs(*later) == 1


def test_runs_with_another_measurement_do_not_count(evaluation: Evaluation) -> None:
    evaluation.run(1, verdict="probability")
    nights = evaluation.runs(2, 3, 4)
    assert earlier_runs(*nights[1:]) == 1
