"""The slices of a run in its summary and in the history."""

import json
from pathlib import Path

import pytest

from tasks.history.catalogue import Catalogue
from tests.flows.test_evaluate import METRICS, evaluate

pytestmark = [pytest.mark.prefect, pytest.mark.models, pytest.mark.usefixtures("prefect_stub")]


def test_summary_and_history_have_the_metrics_of_each_slice(tmp_path: Path) -> None:
    history = str(tmp_path / "history.db")
    run = evaluate(tmp_path, slices=["topic"], history=history)
    (recorded,) = Catalogue(history).runs("rows")
    assert {each.slice_column for each in recorded.metrics} == {"", "topic"}
    [column] = json.loads((run / "summary.json").read_text())["slices"]
    assert (column["column"], column["values"], column["merged"]) == ("topic", 1, 0)
    assert [(one["value"], one["rows"], one["is_small"]) for one in column["slices"]] == [
        ("doors", 4, True),
        ("(no value)", 1, True),
    ]
    for one in column["slices"]:
        assert [metric["metric"] for metric in one["metrics"]] == list(METRICS)
        accuracy = next(metric for metric in one["metrics"] if metric["metric"] == "nv_accuracy")
        assert (accuracy["scored"], accuracy["distribution"]["mean"]) == (one["rows"], 0.75)
        assert (accuracy["distribution"]["interval"], accuracy["rest"]) == (None, None)
