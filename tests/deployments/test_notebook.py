"""Evaluation from Python, as docs/python.md shows it."""

import re
from pathlib import Path
from typing import Any

import pytest

from deployments.notebook import RunResult, evaluate
from metric_core.errors import SourceError

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
