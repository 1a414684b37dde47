"""Gates over the nights of a year: rows that are new every night add up, the same rows do not."""

import json
from pathlib import Path

import numpy as np
import pytest

from flows.config.gate_file import parse_gate
from flows.results.gated_comparison import CompareOptions, apply_gate
from metric_core.gates.rules import GateResult
from metric_core.records import Score
from metric_core.stages import Stage
from tasks.history.catalogue import Catalogue
from tests.tasks.reports import folders

ROWS = 200
METRICS = {"faithfulness": {"direction": "higher", "bounds": [0.0, 1.0]}}
GATE = {"absolute": ["faithfulness >= 0.9"], "looks": 366}


class Evaluation:
    """Nights of 200 rows, of which 170 score 1."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.history = folder, str(folder / "history.db")

    def run(self, day: int, first_row: int, year: int = 2026) -> Path:
        """Write the run of a day, and record it.

        Args:
            first_row: Number of its first row: runs with the same number have the same rows.
        """
        values = np.random.default_rng(day).permutation([1.0] * 170 + [0.0] * 30)
        cells = {f"row-{first_row + i}": {"faithfulness": Score.scored(float(value))} for i, value in enumerate(values)}
        samples = [{"row_id": name, "row_number": i + 1, "user_input": name} for i, name in enumerate(cells)]
        manifest = {
            "status": "completed",
            "created": f"{year}-01-{day:02}T03:00:00+00:00",
            "run_id": f"run-{year}-{day}",
            "name": "support",
            "config": {"history": self.history},
        }
        folder = folders.write_run(self.folder / f"{year}-{day}", cells, {Stage.SAMPLES: samples}, METRICS, manifest)
        Catalogue(self.history).record(folder)
        return folder

    def change_history(self, run: Path, address: str) -> None:
        """Have a run name another history."""
        content = json.loads((run / "run.json").read_text(encoding="utf-8"))
        content["config"]["history"] = address
        folders.write_json(run / "run.json", content)


@pytest.fixture
def evaluation(tmp_path: Path) -> Evaluation:
    return Evaluation(tmp_path)


def check(run: Path) -> GateResult:
    found = apply_gate(run, CompareOptions(gate=parse_gate(GATE, "the gate"))).gate
    assert found is not None
    return found


def test_nights_of_new_rows_add_up(evaluation: Evaluation) -> None:
    runs = [evaluation.run(day, 1000 * day) for day in range(1, 5)]
    assert check(runs[0]).outcome == "inconclusive"
    [failed] = check(runs[-1]).checks
    assert failed.outcome == "failed"
    assert failed.reason == "violates the threshold by more than chance, together with the nights before it"


def test_the_same_rows_again_are_no_new_evidence(evaluation: Evaluation) -> None:
    runs = [evaluation.run(day, 0) for day in range(1, 5)]
    assert check(runs[-1]).outcome == "inconclusive"
    overlapping = evaluation.run(5, 100)
    assert check(overlapping).outcome == "inconclusive"


def test_the_nights_of_another_year_do_not_count(evaluation: Evaluation) -> None:
    for day in range(1, 5):
        evaluation.run(day, 1000 * day, year=2025)
    assert check(evaluation.run(1, 9000)).outcome == "inconclusive"
