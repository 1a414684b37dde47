"""A rebuilt index is checked before its version is evaluated: beyond its limits nothing is asked."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from flows.config.run_config import RunConfig
from flows.index_rebuilt import index_rebuilt
from flows.results.gated_comparison import CompareOptions, compare_runs
from tasks.index_receipt.receipt_finding import IndexReceipt, compared_sentences
from tasks.runs.finished_run import FinishedRun
from tasks.runs.run_folder import COMPARISON, REPORT

pytestmark = [pytest.mark.prefect, pytest.mark.models]

DOCUMENTS = 60


def text(number: int, hour: str = "nine") -> str:
    return f"Hall {number} repairs bikes. It opens at {hour}, and closes at six on all days but Sunday."


class Chain:
    """An index whose versions are announced with their chunks."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.rows = self.write("rows.jsonl", [self.row(number) for number in range(40)])
        self.deploy: dict[str, Any] = {
            "baselines": str(folder / "baselines"),
            "alerts": {"file": str(folder / "alerts.jsonl")},
        }

    def row(self, number: int, hour: str = "nine") -> dict[str, Any]:
        answer, passages = f"Hall {number} repairs bikes.", [text(number, hour)]
        question = f"What does hall {number} do?"
        return {"id": f"r{number}", "user_input": question, "response": answer, "retrieved_contexts": passages}

    def write(self, name: str, rows: Sequence[dict[str, Any]]) -> str:
        (self.folder / name).write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
        return str(self.folder / name)

    def chunks(self, name: str, lost: int = 0, edited: int = 0) -> str:
        numbers = range(lost, DOCUMENTS)
        texts = [text(number, "ten" if number < lost + edited else "nine") for number in numbers]
        rows = [
            {"id": f"{number}#1", "document": f"hall-{number}.md", "text": each, "acl": ["staff"]}
            for number, each in zip(numbers, texts, strict=True)
        ]
        return self.write(name, rows)

    def evaluate(self, version: str, rows: str = "", **more: Any) -> tuple[str, str]:
        config = RunConfig.model_validate(
            {
                "source": str(self.folder / "rows.jsonl"),
                "metrics": ["faithfulness"],
                "tables": str(self.folder / "tables"),
                "cache": str(self.folder / "answers.db"),
                "history": str(self.folder / "history.db"),
                "deploy": self.deploy,
            }
        )
        rows = rows or self.rows
        state = index_rebuilt(config, index="halls", version=version, dataset=rows, return_state=True, **more)
        return state.name or "", state.message or ""

    @property
    def runs(self) -> list[Path]:
        return sorted(each.parent for each in (self.folder / "runs").glob("*/run.json"))

    @property
    def alerts(self) -> list[dict[str, Any]]:
        path = self.folder / "alerts.jsonl"
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


@pytest.fixture
def chain(tmp_path: Path, prefect_stub: object, monkeypatch: pytest.MonkeyPatch) -> Chain:
    del prefect_stub
    monkeypatch.chdir(tmp_path)
    return Chain(tmp_path)


def test_an_index_beyond_its_limits_is_not_evaluated(chain: Chain) -> None:
    assert chain.evaluate("1", chunks=chain.chunks("1.jsonl"))[0] == "Accepted"
    assert chain.alerts == []
    name, message = chain.evaluate("2", chunks=chain.chunks("2.jsonl", lost=3))
    assert name == "Failed"
    assert "nothing was asked: 3 of 60 documents of the old index are gone (5.0 %, at most 1.0 %): hall-0.md" in message
    assert "the scores of 3 of 40 rows must be expected to move" in message
    assert len(chain.runs) == 1
    (alert,) = chain.alerts
    first, second = alert["text"].splitlines()[:2]
    assert first == "index halls, version 2 could not be evaluated"
    assert second.startswith("- the index is beyond its limits, so that nothing was asked: 3 of 60 documents")

    chain.deploy["index_limits"] = {"lost": 0.1}
    assert chain.evaluate("3", chunks=chain.chunks("2.jsonl", lost=3))[0] == "Accepted"


def test_changes_within_the_limits_stand_beside_the_scores(chain: Chain) -> None:
    chain.evaluate("1", chunks=chain.chunks("1.jsonl"))
    rows = chain.write("2.jsonl", [chain.row(number, "ten" if number < 20 else "nine") for number in range(40)])
    assert chain.evaluate("2", rows, chunks=chain.chunks("c.jsonl", edited=20))[0] == "Accepted"
    first, second = chain.runs
    found = FinishedRun(second).record.find(IndexReceipt)
    assert found is not None
    assert next(each.kind for each in found.findings) == "edited"
    compared = [*compared_sentences(compare_runs(first, second, CompareOptions()))]
    assert compared[1].startswith("20 of 60 documents have another text than before (33 %): hall-0.md")
    assert any(each.startswith("the scores of 20 of 40 rows must be expected to move") for each in compared)
    for page in (REPORT, COMPARISON):
        assert "documents have another text than before" in (second / page).read_text(encoding="utf-8")


def test_an_alert_opens_with_what_the_index_lost(chain: Chain) -> None:
    chain.deploy |= {"beyond_limits": "evaluate"}
    chain.evaluate("1", chunks=chain.chunks("1.jsonl"))
    wrong = [{**chain.row(number), "response": f"The moon of planet {number} is of cheese."} for number in range(40)]
    name, _ = chain.evaluate("2", chain.write("2.jsonl", wrong), chunks=chain.chunks("c.jsonl", lost=2))
    assert name == "Failed"
    (alert,) = chain.alerts
    assert (
        alert["worse"][0]
        == "the index (58 documents, 58 chunks) was checked before the evaluation: beyond the limits: lost"
    )
    assert alert["worse"][1].startswith("2 of 60 documents of the old index are gone")


def test_a_version_without_chunks_is_not_checked(chain: Chain) -> None:
    chain.evaluate("1", chunks=chain.chunks("1.jsonl"))
    assert chain.evaluate("2")[0] == "Accepted"
    assert FinishedRun(chain.runs[-1]).record.find(IndexReceipt) is None
    assert chain.evaluate("3", chunks=chain.chunks("3.jsonl", lost=5))[0] == "Accepted", "nothing to compare it with"


def test_chunks_that_cannot_be_read_stop_the_run(chain: Chain) -> None:
    name, message = chain.evaluate("1", chunks="no-such-file.jsonl")
    assert (name, "no-such-file.jsonl" in message, chain.runs) == ("Failed", True, [])
