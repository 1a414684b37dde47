"""The flow `rerun` and baselines: the questions that are asked, and tables that stay equal."""

import json
import shutil
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from flows.config.run_config import RunConfig
from flows.dry_run.rerun_preview import preview_rerun
from flows.evaluate import run_evaluation
from flows.execution.rerun_plan import parse_rerun_request, prepare_rerun
from flows.rerun import run_rerun
from metric_core.errors import AssayError, ConfigError, RunFolderError, SourceError
from metric_core.prompts.judge_questions import JudgeQuestion
from metric_core.stages import Stage
from tasks.models.judges.scripted import ScriptedJudge
from tasks.runs.finished_run import FinishedRun
from tests.tasks.builders import fails, says, script

pytestmark = [pytest.mark.prefect, pytest.mark.models]

METRICS = ("faithfulness", "nv_accuracy", "answer_similarity")
ANSWERS = (
    *(
        says("claims", f"Bikes are repaired in hall {n}.", answer={"claims": [f"Hall {n} repairs bikes."]})
        for n in range(9)
    ),
    says("verdict", answer={"yes": 0.8, "no": 0.2}),
    says("accuracy_1", answer="4"),
    says("accuracy_2", answer="2"),
)


def row(number: int, **other: Any) -> dict[str, Any]:
    return {
        "id": f"r{number}",
        "user_input": "Where are bikes repaired?",
        "response": f"Bikes are repaired in hall {number}.",
        "retrieved_contexts": [f"Repairs happen in hall {number}."],
        "reference": f"In hall {number}.",
    } | other


class Bench:
    """Runs over a source of five rows in three shards, with shared stores."""

    def __init__(self, folder: Path, asked: list[JudgeQuestion]) -> None:
        self.folder = folder
        self.asked = asked

    def write(self, *rows: Mapping[str, Any]) -> None:
        (self.folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")

    def run(self, name: str, *answers: Mapping[str, Any], **options: Any) -> Path:
        config = {
            "source": str(self.folder / "rows.jsonl"),
            "metrics": METRICS,
            "judge": script(self.folder, *ANSWERS, *answers).model_dump(),
            "out": str(self.folder / name),
            "tables": str(self.folder / "tables"),
            "cache": str(self.folder / "answers.db"),
            "shard_rows": 2,
        }
        run = run_evaluation(RunConfig.model_validate(config | options)).folder
        self.forget()
        return Path(run)

    def rerun(self, run: Path, *answers: Mapping[str, Any], **said: Any) -> Path:
        script(self.folder, *ANSWERS, *answers)
        return Path(
            run_rerun(parse_rerun_request(**{"run": str(run), "out": str(self.folder / "rerun")} | said)).folder
        )

    def forget(self) -> None:
        self.asked.clear()

    def empty_stores(self) -> None:
        """Delete all tables and cached answers, but no run folder."""
        shutil.rmtree(self.folder / "tables")
        with closing(sqlite3.connect(self.folder / "answers.db")) as answers, answers:
            for (name,) in answers.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                answers.execute(f'DELETE FROM "{name}"')

    @property
    def halls(self) -> dict[str, set[str]]:
        """Halls in the questions since the last run, by kind of question."""
        found: dict[str, set[str]] = {}
        for question in self.asked:
            words = " ".join(question.texts.values()).replace(".", " ").lower().split()
            numbers = {after for word, after in pairwise(words) if word == "hall"}
            found.setdefault(str(question.kind), set()).update(numbers)
        return found


@pytest.fixture
def bench(prefect_stub: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:  # noqa: ARG001
    asked: list[JudgeQuestion] = []
    answer = ScriptedJudge._answer

    def record(judge: ScriptedJudge, question: JudgeQuestion) -> Any:
        asked.append(question)
        return answer(judge, question)

    monkeypatch.setattr(ScriptedJudge, "_answer", record)
    made = Bench(tmp_path, asked)
    made.write(*map(row, range(5)))
    return made


def manifest(run: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((run / "run.json").read_text())
    return content


def content(run: Path) -> dict[str, list[str]]:
    """Return the tables of a run, with rows in an order that does not depend on shards and products."""
    tables = {path.stem: pq.read_table(path) for path in (*(run / "stages").glob("*.parquet"), run / "scores.parquet")}
    return {name: sorted(map(json.dumps, table.to_pylist())) for name, table in tables.items()}


def status(run: Path) -> dict[tuple[str, str], str]:
    rows: Sequence[Mapping[str, Any]] = pq.read_table(run / "scores.parquet").to_pylist()
    return {(cell["row_id"], cell["metric"]): cell["status"] for cell in rows}


CUT = fails("claims", "Bikes are repaired in hall 3.")


def test_only_failed_rows_are_asked_even_without_stores(bench: Bench) -> None:
    whole = bench.run("whole")
    bench.empty_stores()
    broken = bench.run("broken", CUT)
    assert status(broken)["r3", "faithfulness"] == "failed"
    bench.empty_stores()
    mended = bench.rerun(broken)
    assert {hall for halls in bench.halls.values() for hall in halls} == {"3"}
    assert {"claims", "verdict", "accuracy_1"} <= set(bench.halls)
    assert content(mended) == content(whole)
    said = manifest(mended)
    assert said["parent"] == {"run_id": manifest(broken)["run_id"], "folder": str(broken)}
    assert said["rerun"] == {"rows": "failed", "stage": None, "rows_anew": 1, "notes": said["warnings"][-1:]}
    assert (said["status"], said["rows"], said["rows_read"]) == ("completed", 5, 5)
    assert "--rows all" in said["warnings"][-1]  # the corrected script is a different judge
    assert (mended / "report.html").is_file()


def test_rerun_of_a_late_stage_reuses_earlier_stages(bench: Bench) -> None:
    broken = bench.run("broken", fails("verdict", "Hall 1 repairs bikes."))
    bench.empty_stores()
    mended = bench.rerun(broken, stage="verdicts", rows="failed")
    assert bench.halls == {"verdict": {"1"}}
    assert set(status(mended).values()) == {"scored"}
    bench.forget()
    with pytest.raises(ConfigError, match="nothing to do: no cell"):
        bench.rerun(mended, out=None)
    assert bench.asked == []
    again = bench.rerun(mended, stage="verdicts", out=str(bench.folder / "again"))  # nothing failed, but it is named
    assert bench.halls == {"verdict": set("01234")}
    assert manifest(again)["rerun"]["rows"] == "all"


def test_only_failures_of_the_chosen_metrics_count(bench: Bench) -> None:
    broken = bench.run("broken", CUT)
    with pytest.raises(ConfigError, match="nothing to do"):
        bench.rerun(broken, metrics="nv_accuracy")


def test_rerun_of_all_rows_asks_again_from_a_stage_on(bench: Bench) -> None:
    run = bench.run("run")
    again = bench.rerun(run, says("verdict", answer={"yes": 0.1, "no": 0.9}), rows="all", stage="verdicts")
    assert bench.halls == {"verdict": set("01234")}
    assert [name for name, rows in content(again).items() if rows != content(run)[name]] == ["verdicts", "scores"]
    bench.forget()
    bench.rerun(run, rows="all")
    assert set(bench.halls) == {"claims", "verdict", "accuracy_1", "accuracy_2"}
    assert all(halls == set("01234") for halls in bench.halls.values())


def test_preview_says_what_the_rerun_does(bench: Bench) -> None:
    broken = bench.run("broken", fails("verdict", "Hall 1 repairs bikes."))
    bench.forget()

    def check(recomputed: int, said: Mapping[str, Any], **stages: tuple[int, int, int]) -> None:
        preview = preview_rerun(prepare_rerun(parse_rerun_request(run=str(broken), **said)))
        found = {
            str(each.stage): (each.kept, each.missing + each.unknown, each.tally.asked)
            for each in preview.dry_run.stages
        }
        assert (preview.dry_run.rows, preview.recomputed) == (5, recomputed)
        assert {stage: found[stage] for stage in stages} == stages

    check(1, {}, claims=(5, 0, 0), verdicts=(4, 1, 1))  # the claims of the failed row are stored
    check(5, {"stage": "verdicts"}, claims=(5, 0, 0), verdicts=(0, 5, 5))
    check(5, {"stage": "aggregation"}, claims=(5, 0, 0), verdicts=(5, 0, 0), aggregation=(0, 5, 0))
    bench.empty_stores()
    check(1, {}, claims=(4, 1, 1), verdicts=(4, 1, 1), similarity=(4, 1, 0))
    assert bench.asked == []


def test_source_is_found_from_another_folder(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(bench.folder)
    run = bench.run("run", source="rows.jsonl")
    assert manifest(run)["source"] == "rows.jsonl"
    bench.write(row(0), row(7))
    elsewhere = bench.folder / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    assert {row_id for row_id, _ in status(bench.rerun(run, rows="changed"))} == {"r0", "r7"}


def test_bad_rows_of_a_changed_source_can_be_left_out(bench: Bench) -> None:
    run = bench.run("run")
    bench.write(row(0), row(1), row(1))
    with pytest.raises(SourceError, match=r"--on-bad-row skip"):
        bench.rerun(run, rows="changed")
    changed = bench.rerun(run, rows="changed", on_bad_row="skip")
    assert {row_id for row_id, _ in status(changed)} == {"r0", "r1"}
    assert manifest(changed)["bad_row_count"] == 1


def test_new_metric_is_computed_from_existing_results(bench: Bench) -> None:
    run = bench.run("run")
    bench.empty_stores()
    stores = {"cache": str(bench.folder / "other.db"), "tables": str(bench.folder / "other")}
    more = bench.rerun(run, metrics="faithfulness,string_similarity", **stores)
    assert not (bench.folder / "tables").exists()
    assert (bench.folder / "other" / "rows" / "claims").is_dir()
    assert bench.asked == []
    assert manifest(more)["config"]["cache"] == str(bench.folder / "other.db")
    assert {metric for _, metric in status(more)} == {"faithfulness", "string_similarity"}


def test_new_products_of_a_metric_are_computed_for_all_rows(bench: Bench) -> None:
    run = bench.run("run", metrics=["answer_similarity"])
    bench.empty_stores()
    more = bench.rerun(run, metrics="answer_similarity,faithfulness")
    assert {kind: len(halls) for kind, halls in bench.halls.items()} == {"claims": 5, "verdict": 5}
    bench.empty_stores()
    assert content(more) == content(bench.run("whole", metrics=["answer_similarity", "faithfulness"]))


def test_invalid_baseline_stops_the_run_before_any_question(bench: Bench) -> None:
    with pytest.raises(RunFolderError, match="is not a run folder"):
        bench.run("run", baseline=str(bench.folder))
    assert bench.asked == []


def edit_manifest(run: Path, **entries: Any) -> str:
    (run / "run.json").write_text(json.dumps({**manifest(run), **entries}), encoding="utf-8")
    return str(run)


def test_rerun_errors_have_clear_messages(bench: Bench) -> None:
    run = bench.run("run", CUT, metrics=["faithfulness"])
    known = manifest(run)
    cases: list[tuple[Mapping[str, Any], Mapping[str, Any], type[AssayError], str]] = [
        ({"format": 99}, {}, RunFolderError, "has the format 99, this rag-assay reads"),
        ({"status": "failed"}, {}, RunFolderError, "is not finished"),
        ({"config": {"limit": "many"}}, {}, RunFolderError, "written by rag-assay .* cannot be used"),
        (
            {},
            {"stage": "similarity"},
            ConfigError,
            "it has claims, verdicts, languages, aggregation",
        ),
        ({}, {"stage": "claims", "rows": "changed"}, ConfigError, "leave --stage out"),
        ({}, {"metrics": "context_recall,nv_accuracy", "model": "m"}, ConfigError, "give --judge too"),
        ({}, {"metrics": "noise_sensitivity(mode=x)"}, ConfigError, "mode"),
        ({}, {"cache": "postgresql://assay:hunter2@db/answers"}, ConfigError, "PGPASSWORD"),
        ({}, {"rows": "some"}, ConfigError, "rows: Input should be 'failed', 'changed' or 'all'"),
    ]
    for entries, said, kind, message in cases:
        edit_manifest(run, **{**known, **entries})
        with pytest.raises(kind, match=message):
            prepare_rerun(parse_rerun_request(run=str(run), **said))
    edit_manifest(run, **known)
    with pytest.raises(RunFolderError, match="is the run itself"):
        bench.rerun(run, out=str(run))
    with pytest.raises(RunFolderError, match=r"is not a run folder: it has no run\.json"):
        FinishedRun(bench.folder)
    (run / "stages" / "claims.parquet").unlink()
    with pytest.raises(RunFolderError, match=r"not a complete run folder: it has no stages/claims\.parquet"):
        bench.rerun(run)


def test_stages_of_another_version_are_recomputed_for_all_rows(bench: Bench) -> None:
    run = bench.run("run", CUT)
    known = manifest(run)
    assert prepare_rerun(parse_rerun_request(run=str(run))).whole == frozenset()
    edit_manifest(run, stage_versions={**known["stage_versions"], "claims": 0})
    assert prepare_rerun(parse_rerun_request(run=str(run))).whole == {Stage.CLAIMS, Stage.VERDICTS}
    other_code = [{**metric, "code": "another"} for metric in known["metrics"]]
    edit_manifest(run, **{**known, "metrics": other_code})
    assert prepare_rerun(parse_rerun_request(run=str(run))).whole == {Stage.RATINGS}


def test_warnings_name_the_models_of_reused_rows_while_they_are_reused(bench: Bench) -> None:
    first = bench.rerun(bench.run("run", CUT), out=str(bench.folder / "first"))
    (note,) = manifest(first)["warnings"]
    assert note.startswith("reused rows have answers of scripted")
    bench.write(*map(row, range(6)))
    second = bench.rerun(first, rows="changed", out=str(bench.folder / "second"))
    assert manifest(second)["warnings"] == [note]
    edit_manifest(second, embedder={**manifest(second)["embedder"], "revision": "another"})
    third = bench.rerun(second, rows="all", stage="verdicts", out=str(bench.folder / "third"))
    assert [words.split(" of ")[0] for words in manifest(third)["warnings"]] == [
        "reused rows have answers",
        "reused rows have vectors",
    ]
    assert manifest(bench.rerun(third, rows="all"))["warnings"] == []


def test_metric_without_its_columns_is_refused(bench: Bench) -> None:
    bench.write(*({name: value for name, value in row(n).items() if name != "reference"} for n in range(2)))
    run = bench.run("run", metrics=["faithfulness"])
    with pytest.raises(SourceError, match="context_recall needs reference, which no row"):
        prepare_rerun(parse_rerun_request(run=str(run), metrics=("context_recall",)))


def test_missing_source_matters_only_if_it_is_read(bench: Bench) -> None:
    run = bench.run("run", CUT)
    (bench.folder / "rows.jsonl").unlink()
    with pytest.raises(SourceError, match=r"rows\.jsonl"):
        bench.rerun(run, rows="changed")
    assert set(status(bench.rerun(run)).values()) == {"scored"}
