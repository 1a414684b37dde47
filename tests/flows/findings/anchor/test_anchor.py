"""The anchor of a run on a real Prefect server: asked about once per judge, and what it says of a change."""

import json
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from flows.config.run_config import RunConfig
from flows.evaluate import run_evaluation
from flows.execution.rerun_plan import parse_rerun_request
from flows.findings.anchor import anchor_evaluation
from flows.findings.preview import preview_run
from flows.planning.planner import draft_plan
from flows.rerun import run_rerun
from flows.results.run_result import RunResult
from metric_core.errors import AssayError, JudgeError
from metric_core.prompts.judge_questions import JudgeQuestion
from tasks.comparison.changed_side import ChangedSide, Side, SideFinder
from tasks.comparison.run_pair import Matching, RunPair
from tasks.findings.judge_facts import judge_evidence
from tasks.models.judges.scripted import ScriptedJudge
from tasks.runs.finished_run import FinishedRun
from tests.full_disk import fill, small_disk
from tests.tasks.builders import says, script

pytestmark = [pytest.mark.prefect, pytest.mark.models]

ANCHOR_WORDS = ["easy"] * 12 + ["hard"] * 12 + ["broken"] * 12
KINDS = ("anchor", "first", "second", "same")


def judge_that_refuses(*words: str) -> tuple[dict[str, Any], ...]:
    """Return the script of a judge that supports claims unless the passage has one of these words."""
    refused = [
        says("verdict", passage(word, kind, number), answer={"yes": 0.1, "no": 0.9})
        for word in words
        for kind in KINDS
        for number in range(len(ANCHOR_WORDS))
    ]
    claims = says("claims", answer={"claims": ["Hall 1 repairs bikes."]})
    return (claims, *refused, says("verdict", answer={"yes": 0.9, "no": 0.1}))


def passage(word: str, kind: str, number: int) -> str:
    return f"The {word} passage of {kind} {number}."


GOOD = ["easy"] * 6 + ["hard"] * 12 + ["broken"] * 6
JUDGE, STRICTER = judge_that_refuses("broken"), judge_that_refuses("broken", "hard")


def rows(kind: str, words: Sequence[str]) -> list[dict[str, Any]]:
    """Return a row per word, which says how a judge finds its claim."""
    return [
        {
            "id": f"{kind}{number}",
            "user_input": "Where are bikes repaired?",
            "response": f"Hall 1 repairs bikes, says {kind} {number}.",
            "retrieved_contexts": [passage(word, kind, number)],
            "faithful": int(word != "broken"),
        }
        for number, word in enumerate(words)
    ]


class Nights:
    """Runs that share stores and an anchor, and the questions that the judge was asked."""

    def __init__(self, folder: Path, asked: list[JudgeQuestion]) -> None:
        self.folder = folder
        self.asked = asked
        self.write("anchor.jsonl", rows("anchor", ANCHOR_WORDS))

    def write(self, name: str, content: Sequence[Mapping[str, Any]]) -> str:
        path = self.folder / name
        path.write_text("\n".join(map(json.dumps, content)), encoding="utf-8")
        return str(path)

    def config(
        self, name: str, words: Sequence[str] = GOOD, judge: Sequence[Mapping[str, Any]] = JUDGE, **more: Any
    ) -> RunConfig:
        options = {
            "source": self.write("rows.jsonl", rows(name, words)),
            "anchor": {"source": str(self.folder / "anchor.jsonl"), "labels": {"faithfulness": "faithful"}},
            "metrics": ["faithfulness"],
            "judge": script(self.folder, *judge).model_dump(),
            "out": str(self.folder / name),
            "tables": str(self.folder / "tables"),
            "cache": str(self.folder / "answers.db"),
        }
        return RunConfig.model_validate(options | more)

    def run(self, name: str, *arguments: Any, **more: Any) -> Path:
        self.asked.clear()
        return Path(run_evaluation(self.config(name, *arguments, **more)).folder)

    def asked_about_anchor(self) -> int:
        return sum("anchor" in str(question) for question in self.asked)


@pytest.fixture
def nights(prefect_stub: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Nights:  # noqa: ARG001
    asked: list[JudgeQuestion] = []
    answer = ScriptedJudge._answer

    def record(judge: ScriptedJudge, question: JudgeQuestion) -> Any:
        asked.append(question)
        return answer(judge, question)

    monkeypatch.setattr(ScriptedJudge, "_answer", record)
    return Nights(tmp_path, asked)


def entry(run: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((run / "run.json").read_text())["anchor"]
    return found


def changed_side(baseline: Path, run: Path) -> ChangedSide:
    return finder_of(baseline, run).find("faithfulness")


def finder_of(baseline: Path, run: Path) -> SideFinder:
    before, after = FinishedRun(baseline), FinishedRun(run)
    return SideFinder(before, RunPair.from_runs(before, after, Matching()), judge_evidence(before, after))


def test_records_that_a_full_disk_could_not_take_are_told_to_the_caller(nights: Nights) -> None:
    whole = run_evaluation(nights.config("whole"))
    assert whole.lacks == ()
    with small_disk(nights.folder / "disk", 2**20) as disk:
        fill(disk)
        unrecorded = run_evaluation(nights.config("unrecorded", history=str(disk / "history.db")))
    (nights.folder / "unanchored").mkdir()
    with small_disk(nights.folder / "unanchored" / "anchor", 2**13):  # no room for the tables
        unanchored = run_evaluation(nights.config("unanchored"))
    assert ["the run was not recorded in the history" in each for each in unrecorded.lacks] == [True]
    assert ["the anchor has no scores" in each for each in unanchored.lacks] == [True]
    assert "No space left on device" in unanchored.lacks[0]
    for run in (unrecorded, unanchored):
        assert set(run.lacks) <= set(run.warnings)


def test_an_unchanged_judge_is_asked_about_the_anchor_once(nights: Nights) -> None:
    first = nights.run("first")
    about_anchor = nights.asked_about_anchor()
    found = entry(first)
    second = nights.run("second")

    assert about_anchor == found["usage"]["asked"] == 2 * len(ANCHOR_WORDS)
    assert nights.asked_about_anchor() == entry(second)["usage"]["asked"] == 0
    assert nights.asked, "the rows of the second night are others"
    assert found["rows"] == len(ANCHOR_WORDS)
    assert found["metrics"]["faithfulness"]["mean"] == pytest.approx(2 / 3)
    assert entry(second)["digest"] == found["digest"]
    assert FinishedRun(first / "anchor").record.to_json()["anchor_of"]["run_id"] == FinishedRun(first).run_id
    assert found["agreement"]["faithfulness"]["figures"]["kappa"]["value"] == 1
    assert "All 72 answers were cached." in (second / "report.html").read_text()
    of_anchor = RunResult(second).anchor
    assert of_anchor is not None
    assert of_anchor.summary["faithfulness"]["distribution"]["mean"] == pytest.approx(2 / 3)

    again = Path(run_rerun(parse_rerun_request(run=str(second), rows="all", out=str(nights.folder / "again"))).folder)

    assert entry(again)["usage"]["asked"] == 0
    assert (again / "anchor" / "scores.parquet").is_file()


def test_a_change_is_named_as_the_judges_or_the_systems(nights: Nights) -> None:
    before = nights.run("same", GOOD, JUDGE)
    shutil.copytree(before, nights.folder / "baseline")
    baseline = nights.folder / "baseline"

    swapped = nights.run("same", GOOD, STRICTER)
    assert nights.asked_about_anchor() == 2 * len(ANCHOR_WORDS)
    by_judge = changed_side(baseline, swapped)
    changes = finder_of(baseline, swapped).changes
    revisions = [FinishedRun(run).record.to_json()["judge"]["revision"] for run in (baseline, swapped)]
    worse = nights.run("same", ["broken"] * len(GOOD), JUDGE)
    by_system = changed_side(baseline, worse)

    assert by_judge.side is Side.JUDGE
    assert by_judge.sentence.startswith("The judge changed: the judge has another fingerprint")
    assert by_system.side is Side.SYSTEM
    assert changes == (f"judge revision: {revisions[0]} is now {revisions[1]}",)


def test_an_anchor_that_cannot_be_used_is_refused_before_anything_is_asked(nights: Nights) -> None:
    source = str(nights.folder / "anchor.jsonl")
    for anchor, reason in (
        ({"source": str(nights.folder / "missing.jsonl")}, "missing.jsonl"),
        ({"source": source, "column_map": {"response": "reference"}}, "no metric of the run can work on the anchor"),
        ({"source": source, "labels": {"faithfulness": "unknown"}}, "'unknown'"),
        ({"source": source, "labels": {"answer_relevancy": "faithful"}}, "anchor.labels names the metric"),
    ):
        with pytest.raises(AssayError, match=reason):
            nights.run("first", anchor=anchor)
    assert nights.asked == []


def test_a_run_that_crashed_at_its_anchor_asks_nothing_again(nights: Nights, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(anchor_evaluation, "write_run_folder", _crash)
        with pytest.raises(RuntimeError, match="the machine is gone"):
            nights.run("first")
    assert nights.asked_about_anchor() == 2 * len(ANCHOR_WORDS)

    resumed = nights.run("first")

    assert nights.asked == []
    assert entry(resumed)["usage"]["asked"] == 0


def test_a_judge_that_cannot_answer_about_the_anchor_costs_no_result(
    nights: Nights, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> Any:
        raise JudgeError("the judge is lost")

    monkeypatch.setattr(anchor_evaluation, "compute_rows", refuse)

    run = nights.run("first")

    manifest = FinishedRun(run).record.to_json()
    assert entry(run)["reason"] == "the judge is lost"
    assert manifest["status"] == "completed"
    assert any("the anchor has no scores" in warning for warning in manifest["warnings"])
    assert changed_side(run, run).side is Side.UNKNOWN


def test_a_dry_run_counts_the_questions_about_the_anchor(nights: Nights) -> None:
    config = nights.config("first")
    before = preview_run(draft_plan(config))
    nights.run("first")
    after = preview_run(draft_plan(config))

    assert before.of_findings["rows_asked_again"] is None
    of_anchor, of_anchor_after = before.of_findings["anchor"], after.of_findings["anchor"]
    assert of_anchor is not None
    assert of_anchor.dry_run.tally.asked == 2 * len(ANCHOR_WORDS)
    assert before.tally.asked == 2 * len(ANCHOR_WORDS) + 2 * len(GOOD)
    assert of_anchor_after is not None
    assert (of_anchor_after.dry_run.tally.asked, after.tally.asked) == (0, 0)


def _crash(*_: Any) -> Any:
    raise RuntimeError("the machine is gone")
