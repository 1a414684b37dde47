"""Bias-corrected means of a run: by the labels of an earlier one, then by labels of its own."""

import json
from pathlib import Path
from typing import Any

import pytest

from flows.calibrate import calibrate_run
from flows.config.calibration_request import CalibrationRequest
from flows.evaluate import run_evaluation
from tests.flows.test_calibrate import calibrate_by, config_of, home  # noqa: F401 a fixture

pytestmark = [pytest.mark.prefect, pytest.mark.models, pytest.mark.usefixtures("home")]


def means_of(run: Path) -> Any:
    return json.loads((run / "summary.json").read_text(encoding="utf-8"))["bias_corrected"]


def test_means_are_corrected_by_saved_labels_then_by_labels_of_the_run(tmp_path: Path) -> None:
    calibrate_by(tmp_path)
    run = Path(run_evaluation(config_of(tmp_path, metrics=("faithfulness",), out=str(tmp_path / "later"))).folder)
    whole = {"value": None, "low": 0.0, "high": 1.0}  # ten labels, of which three contradict the judge, are too few
    basis = {"method": "judge error", "labelled": 10, "rows": 11}
    [(metric, corrected)] = means_of(run).items()
    reason = corrected.pop("reason")
    assert (metric, corrected) == ("faithfulness", {"label": "faithful", "span": None, **whole, **basis})
    assert reason.startswith("too few labelled rows")
    assert "No bias-corrected mean" in (run / "report.html").read_text(encoding="utf-8")

    own = CalibrationRequest(config=config_of(tmp_path), label="faithful", run=str(run), sampling="random", keep=False)
    labelled = calibrate_run(own)
    assert labelled.corrected is not None
    assert means_of(run)["faithfulness"] == json.loads(json.dumps(labelled.corrected.to_json()))
    assert "by 10 labels alone, drawn at random from 11" in (run / "report.html").read_text(encoding="utf-8")
