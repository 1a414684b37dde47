"""An index is rebuilt with other chunks, and documents are removed: what each part of the chain says about it.

The versions are announced by events, and evaluated by runs that a worker starts. The index, the assistant and the
judge are those of `rebuilt_index.py`; what the judge knows is read again from the tables of both runs.
"""

import json
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from prefect.client.schemas.objects import FlowRun

from deployments.events import emit_index_rebuilt
from deployments.registry.apply import remove
from flows.index_events.index_event import FROM_INDEX
from flows.results.gated_comparison import CompareOptions, compare_runs
from tasks.comparison.run_comparison import RunComparison
from tasks.history.catalogue import Catalogue
from tasks.index_questions.written_question import WrittenQuestion
from tasks.reports.comparison.comparison_document import comparison_markdown
from tasks.reports.history.history_text import change_lines
from tasks.runs.finished_run import FinishedRun
from tasks.runs.outcome_file import read_outcome
from tests.deployments.served import rebuilt_index
from tests.deployments.served.conftest import Ground, state_of, wait_for_runs

pytestmark = [pytest.mark.prefect, pytest.mark.models, pytest.mark.served]

HANDBOOK = Path(__file__).parents[3] / "examples" / "handbook"
INDEX = "rechunked"
FIRST, SECOND = "1.41.0", "1.42.0"
EVIDENCE = "retired questions from the index, with evidence in parental-leave.md, remote-work.md"


@dataclass(frozen=True)
class Version:
    """A version of the index.

    Args:
        questions: Questions by their ids.
        run: Run that evaluated it.
    """

    questions: Mapping[str, WrittenQuestion]
    run: FlowRun


@dataclass(frozen=True)
class Rebuild:
    """Two versions of the index, and what the run of the second one left.

    Args:
        alert: The only alert.
        compared: The comparison of the two runs.
    """

    ground: Ground
    first: Version
    second: Version
    alert: Mapping[str, Any]
    compared: RunComparison

    @property
    def core(self) -> list[WrittenQuestion]:
        """The questions that both versions answer."""
        return [each for key, each in self.first.questions.items() if key in self.second.questions]

    @property
    def folders(self) -> tuple[Path, Path]:
        """The run folders of both versions."""
        assert self.compared.a is not None
        return Path(self.compared.a.folder), Path(self.compared.b.folder)

    def answers(self) -> tuple[Mapping[str, Mapping[str, Any]], ...]:
        """The rows of both runs, by the ids of their questions."""
        return tuple(
            {row["row_id"]: row for shard in FinishedRun(folder).samples() for row in shard.to_pylist()}
            for folder in self.folders
        )


@pytest.fixture(scope="module")
def rebuild(ground: Ground) -> Iterator[Rebuild]:
    shutil.copy(Path(rebuilt_index.__file__), ground.folder)
    alerts, name = ground.folder / f"alerts-{INDEX}.jsonl", rebuilt_index.Search.__module__.rpartition(".")[2]
    config = {
        "source": str(ground.folder / rebuilt_index.QUESTIONS),
        "chunks": str(ground.folder / rebuilt_index.CHUNKS),
        "retriever": {"index": f"{name}:Search", "generator": f"{name}:Quoting"},
        "judge": {"backend": f"{name}:Reader"},
        "metrics": ["key_point_recall", "retrieval_recall"],
        "history_page": str(ground.folder / "history.html"),
        "deploy": {"index": INDEX, "debounce_seconds": 0, "alerts": {"file": str(alerts)}},
    }
    ground.deploy(config, f"-{INDEX}")
    first, second = announce(ground, FIRST, 1), announce(ground, SECOND, 2)
    (alert,) = map(json.loads, alerts.read_text(encoding="utf-8").splitlines())
    outcome = read_outcome(Path(alert["folder"]))
    assert outcome is not None
    assert outcome.baseline is not None
    compared = compare_runs(Path(outcome.baseline.folder), Path(alert["folder"]), CompareOptions())
    yield Rebuild(ground, first, second, alert, compared)
    remove(f"-{INDEX}", dry_run=False)  # those of other modules are the only ones on the server then


def announce(ground: Ground, version: str, count: int) -> Version:
    """Build a version, announce it, and wait until so many versions are evaluated."""
    questions = rebuilt_index.build(HANDBOOK, ground.folder, version)
    emit_index_rebuilt(INDEX, version, FROM_INDEX)
    runs = wait_for_runs(partial(ground.runs, f"index-rebuilt-{INDEX}"), count)
    return Version(questions, runs[-1])


def find_stated(question: WrittenQuestion, row: Mapping[str, Any]) -> dict[str, bool]:
    """Return whether an answer states each key point of a question."""
    return {point: rebuilt_index.has_words(point, row["response"]) for point in question.key_points}


def test_first_version_is_accepted_and_the_rebuilt_one_is_not(rebuild: Rebuild) -> None:
    became = f"version {FIRST} is now the baseline of index {INDEX}: it is the first version"
    assert state_of(rebuild.first.run) == ("Accepted", became)
    name, message = state_of(rebuild.second.run)
    assert (name, message) == ("Failed", rebuild.alert["text"])
    assert message.startswith(f"index {INDEX}, version {SECOND} was not accepted: the gate failed\n- 7 of 31 rows")
    assert f"\nThe baseline stays version {FIRST}.\nReport: " in message


def test_questions_whose_documents_are_gone_retire_and_others_keep_their_ids(rebuild: Rebuild) -> None:
    gone = [each for key, each in rebuild.first.questions.items() if key not in rebuild.second.questions]
    assert (len(rebuild.core), len(gone), len(rebuild.second.questions)) == (24, 7, 31)
    assert {span.document for each in gone for span in each.spans} == {*rebuilt_index.REMOVED}


def test_alert_says_what_is_missing_what_cannot_be_decided_and_who_lost_what(rebuild: Rebuild) -> None:
    recall: list[float] = []
    lost = Counter[str]()
    before, after = rebuild.answers()
    for question in rebuild.core:
        had, has = (find_stated(question, rows[question.id]) for rows in (before, after))
        recall.append((sum(had.values()) - sum(has.values())) / len(had))
        passages = after[question.id]["retrieved_contexts"]
        for point in question.key_points:
            if had[point] and not has[point]:
                lost["generator" if any(rebuilt_index.has_words(point, text) for text in passages) else "index"] += 1
    assert lost == {"index": 5, "generator": 1}
    missing, points, found, diagnosis, judgments = rebuild.alert["worse"]
    accept = "If the index was to lose this, accept the run as the new baseline: assay accept"
    rows = f"7 of 31 rows of the baseline are missing ({EVIDENCE}), and 7 rows are new"
    assert missing == f"{rows}. {accept} {rebuild.folders[1]}"
    rule, size = "'worse by at most 0.05' cannot be decided, observed", "over 24 rows, wanted at least 30 rows"
    assert points == f"key_point_recall: {rule} {sum(recall) / 24:.3f} {size}"
    assert found == f"retrieval_recall: {rule} 0.150 {size}"
    answers = "The index lost 2 answers, the generator 1. So few changes may be chance."
    assert diagnosis == f"{answers} The index lost 5 key points, the generator 1."
    assert judgments.startswith("judgments: carried 100 %")


def test_comparison_counts_questions_apart_and_tests_the_core_alone(rebuild: Rebuild) -> None:
    assert {each.rows.paired for each in rebuild.compared.metrics} == {24}
    sentences = (
        f"24 rows in both, 7 only in A ({EVIDENCE}), 7 only in B (new questions from the index)",
        "differences and p are of the rows in both: the questions that both versions of the index answer",
        "The index lost 5 key points, the generator 1.",
    )
    page = unescape((rebuild.folders[1] / "comparison.html").read_text(encoding="utf-8"))
    for sentence in sentences:
        assert sentence in comparison_markdown(rebuild.compared)
        assert sentence in page
    assert (f"{INDEX} {FIRST}" in page, f"{INDEX} {SECOND}" in page) == (True, True)


def test_history_compares_the_questions_that_both_versions_answer(rebuild: Rebuild) -> None:
    runs = Catalogue(str(rebuild.ground.home / "history.db")).runs(INDEX)
    before, after = rebuild.answers()
    whole = [
        sum(
            sum(points := find_stated(each, rows[each.id]).values()) / len(points)
            for each in version.questions.values()
        )
        for version, rows in ((rebuild.first, before), (rebuild.second, after))
    ]
    recall = [run.metric("key_point_recall") for run in runs]
    assert [each and each.mean for each in recall] == pytest.approx([total / 31 for total in whole])
    core = [
        sum(sum(points := find_stated(each, rows[each.id]).values()) / len(points) for each in rebuild.core) / 24
        for rows in (before, after)
    ]
    start = f"{runs[0].created:%Y-%m-%d %H:%M}"
    counts = f"questions and references changed: 24 as in the run of {start}, 7 retired, 7 new; over the 24: "
    (line,) = change_lines(runs)
    assert line.partition("  ")[2] == (
        f"index: {INDEX} {FIRST} -> {INDEX} {SECOND}; {counts}key_point_recall {core[0]:.3f} -> {core[1]:.3f}, "
        "retrieval_recall 0.875 -> 0.725, key points lost by the index 9 -> 20, key points lost by the generator 6 -> 1"
    )
    assert counts in (rebuild.ground.folder / "history.html").read_text(encoding="utf-8")
