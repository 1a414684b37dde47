"""A rebuilt index that lost documents and permissions is announced with its chunks: what each part of the chain says.

The judge is a plugin that notes each question, so that a stopped evaluation can be seen to ask none.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from prefect.client.schemas.objects import FlowRun

from deployments.events import emit_index_rebuilt
from deployments.registry.apply import remove
from flows.results.gated_comparison import CompareOptions, compare_runs
from tasks.index_receipt.receipt_finding import IndexReceipt
from tasks.reports.comparison.comparison_document import comparison_markdown
from tasks.runs.finished_run import FinishedRun
from tasks.runs.outcome_file import read_outcome
from tasks.runs.run_folder import REPORT
from tests.deployments.served.conftest import Ground, state_of, wait_for_runs

pytestmark = [pytest.mark.prefect, pytest.mark.models, pytest.mark.served]

INDEX = "halls"
DOCUMENTS, LOST, QUESTIONS = 100, 3, 40
MODULE = "noting_judge_of_halls"
JUDGE = """
from pathlib import Path

from metric_core.prompts.judge_questions import CLAIM, CONTEXT, NO, TEXT, YES
from metric_core.question_kinds import QuestionKind
from tasks.models.judges.scripted import ScriptedJudge


class Noting(ScriptedJudge):
    def __init__(self):
        super().__init__(note, "noting")


def note(question):
    with Path("asked.txt").open("a") as file:
        file.write("asked\\n")
    if question.kind is QuestionKind.CLAIMS:
        return {"claims": [question.texts[TEXT]]}
    return YES if question.texts[CLAIM] in question.texts[CONTEXT] else NO
"""


@dataclass(frozen=True)
class Rebuilds:
    """Three versions of an index, of which the second is stopped, and what their runs left.

    Args:
        asked: Number of questions that the judge had been asked after each version.
        alerts: Alerts about the second and the third version.
    """

    runs: Sequence[FlowRun]
    asked: Sequence[int]
    alerts: Sequence[Mapping[str, Any]]
    folders: Sequence[Path]


def text(number: int) -> str:
    return f"Hall {number} repairs bikes. It opens at nine, and closes at six on all days but Sunday."


def write(path: Path, rows: Sequence[Mapping[str, Any]]) -> str:
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return str(path)


def write_chunks(path: Path, first: int = 0) -> str:
    """Write the chunks of an index; one that lost documents has lost the permissions of a group too."""
    rows = [
        {
            "id": f"{number}#1",
            "document": f"hall-{number}.md",
            "text": text(number),
            "title": f"Hall {number}",
            "acl": [] if first and number % 10 == 5 else ["legal" if number % 10 == 5 else "staff"],
        }
        for number in range(first, DOCUMENTS)
    ]
    return write(path, rows)


def write_rows(path: Path, first: int = 0) -> str:
    """Write the answers of a system whose search finds another hall where a document is gone."""
    rows = [
        {
            "id": f"r{number}",
            "user_input": f"What does hall {number} do?",
            "response": f"Hall {number} repairs bikes.",
            "retrieved_contexts": [text(max(number, first))],
        }
        for number in range(QUESTIONS)
    ]
    return write(path, rows)


@pytest.fixture(scope="module")
def rebuilds(ground: Ground) -> Iterator[Rebuilds]:
    folder = ground.folder
    (folder / f"{MODULE}.py").write_text(JUDGE, encoding="utf-8")
    config: dict[str, Any] = {
        "source": write_rows(folder / "halls-1.jsonl"),
        "judge": {"backend": f"{MODULE}:Noting"},
        "metrics": ["faithfulness"],
    }
    deploy = {
        "index": INDEX,
        "debounce_seconds": 0,
        "alerts": {"file": str(folder / f"alerts-{INDEX}.jsonl")},
        "gate": {"absolute": ["faithfulness.mean >= 0.99"]},
    }
    chunks = [write_chunks(folder / "halls-chunks-1.jsonl"), write_chunks(folder / "halls-chunks-2.jsonl", LOST)]
    rows = [config["source"], write_rows(folder / "halls-2.jsonl", LOST)]
    asked = []
    runs: list[FlowRun] = []
    for version, beyond in enumerate(("stop", "stop", "evaluate"), start=1):
        ground.deploy({**config, "deploy": {**deploy, "beyond_limits": beyond}}, f"-{INDEX}")
        number = min(version, 2) - 1
        emit_index_rebuilt(INDEX, str(version), rows[number], chunks=chunks[number])
        runs = wait_for_runs(partial(ground.runs, f"index-rebuilt-{INDEX}"), version)
        noted = folder / "asked.txt"
        asked.append(len(noted.read_text(encoding="utf-8").splitlines()) if noted.exists() else 0)
    alerts = [json.loads(line) for line in (folder / f"alerts-{INDEX}.jsonl").read_text(encoding="utf-8").splitlines()]
    last = Path(alerts[-1]["folder"])
    outcome = read_outcome(last)
    assert outcome is not None
    assert outcome.baseline is not None
    yield Rebuilds(runs, asked, alerts, (Path(outcome.baseline.folder), last))
    remove(f"-{INDEX}", dry_run=False)


def test_the_evaluation_of_an_index_beyond_its_limits_asks_nothing(rebuilds: Rebuilds) -> None:
    first, second, _ = rebuilds.asked
    assert first > 0
    assert second == first, "no question was asked about the second version"
    assert [state_of(run)[0] for run in rebuilds.runs[:2]] == ["Accepted", "Failed"]
    assert state_of(rebuilds.runs[2])[0] in ("Failed", "Inconclusive")


def test_the_alert_names_what_the_index_lost(rebuilds: Rebuilds) -> None:
    stopped, told = rebuilds.alerts
    assert stopped["title"] == f"index {INDEX}, version 2 could not be evaluated"
    (sentence,) = stopped["worse"]
    for part in (
        "nothing was asked: 3 of 100 documents of the old index are gone (3.0 %, at most 1.0 %): hall-0.md",
        "10 of 97 documents no longer say who may see them: legal in 10 before (10 %, at most 0 %): hall-5.md",
        "the scores of 3 of 40 rows must be expected to move: a retrieved passage is gone or edited (3)",
    ):
        assert part in sentence
    assert told["worse"][0].endswith(
        "was checked before the evaluation: beyond the limits: lost, unprotected, metadata"
    )


def test_report_and_comparison_name_it_beside_the_scores(rebuilds: Rebuilds) -> None:
    before, after = rebuilds.folders
    found = FinishedRun(after).record.find(IndexReceipt)
    assert found is not None
    assert {each.kind: each.count for each in found.findings} == {"lost": 3, "unprotected": 10, "metadata": 10}
    page = (after / REPORT).read_text(encoding="utf-8")
    markdown = comparison_markdown(compare_runs(before, after, CompareOptions()))
    for text_of_page in (page, markdown):
        assert "3 of 100 documents of the old index are gone" in text_of_page
        assert "10 of 97 documents no longer say who may see them" in text_of_page
