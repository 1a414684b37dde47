"""Evaluation from Python, as docs/python.md shows it."""

import re
from pathlib import Path
from typing import Any

import pytest

from deployments.notebook import RunResult, evaluate
from metric_core.errors import BadRowsError, SourceError
from tasks.history.catalogue import Catalogue

PAGE = Path(__file__).parents[2] / "docs" / "python.md"

pytestmark = [pytest.mark.prefect, pytest.mark.models]


def test_the_examples_of_the_page_work(prefect_stub: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert prefect_stub
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    for block in blocks:
        exec(block, names)
    run = names["run"]
    assert isinstance(run, RunResult)
    assert run.folder == tmp_path / "runs" / "first"
    assert run.summary["faithfulness"]["scored"] == 2
    assert names["frame"].columns.tolist() == ["row_id", "metric", "value", "status", "reason", "label"]
    assert names["wide"].shape == (2, 3)
    assert names["texts"].column_names[1:5] == ["user_input", "retrieved_contexts", "response", "reference"]
    assert {path.name for path in tmp_path.iterdir()} == {
        "comparison.html",
        "ragas.jsonl",
        "report.html",
        "runs",
        "scores.csv",
    }


def test_invalid_data_is_refused() -> None:
    with pytest.raises(SourceError, match="data of the type int cannot be evaluated"):
        evaluate(3)  # type: ignore[arg-type]


ROW = {"user_input": "When does it open?", "response": "At nine.", "retrieved_contexts": ["It opens at nine."]}


def test_data_without_a_path_are_called_the_data_and_have_a_history_only_with_a_name(
    prefect_stub: object, tmp_path: Path
) -> None:
    assert prefect_stub
    history = str(tmp_path / "history.db")
    run = evaluate([ROW], metrics=["faithfulness"], out=str(tmp_path / "unnamed"), history=history)
    assert "1 rows of <bdi>the data</bdi>" in run._repr_html_()
    assert ">the data" in run.report().read_text(encoding="utf-8")
    assert Catalogue(history).runs() == []
    with pytest.raises(SourceError, match=r"^the data lacks columns that the metrics need"):
        evaluate([{"user_input": "When?"}], metrics=["faithfulness"])
    with pytest.raises(BadRowsError, match="the only row of the data cannot be evaluated"):
        evaluate([{**ROW, "response": 5}], metrics=["faithfulness"])
    evaluate([ROW], metrics=["faithfulness"], out=str(tmp_path / "named"), name="openings", history=history)
    assert [run.name for run in Catalogue(history).runs()] == ["openings"]
