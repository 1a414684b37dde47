"""The flow `evaluate` on a real Prefect server: names of stages, shards, run folders and failures."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow.parquet as pq
import pytest
from datasets import Dataset, load_dataset
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId

from deployments.local_server import use_server
from flows.config.run_config import RunConfig
from flows.evaluate import run_evaluation
from flows.execution.rerun_plan import parse_rerun_request
from flows.execution.run_record import choose_folder
from flows.planning.run_plan import FolderPlan
from flows.rerun import run_rerun
from metric_core.errors import BadRowsError, ConfigError, FailedCellsError, RunFolderError, SourceError
from tasks.history.catalogue import Catalogue
from tasks.runs.finished_run import FinishedRun
from tasks.runs.run_folder import RunFolder
from tasks.runs.run_start import RunStart
from tests.sharing import ensure_local_server
from tests.tasks.builders import fails, says, script
from tests.tasks.reports.exports.otlp_receiver import OtlpReceiver, attributes_of
from tests.waiting import wait_until

pytestmark = [pytest.mark.prefect, pytest.mark.models]

ROWS: Sequence[Mapping[str, Any]] = [
    {
        "id": f"r{number}",
        "user_input": "Where are bikes repaired?",
        "response": f"Bikes are repaired in Dublin {number}.",
        "retrieved_contexts": [f"Repairs {number} happen in Dublin.", "The canteen serves soup."],
        "reference": f"In Dublin, at door {number}.",
        "topic": "doors" if number else None,
    }
    for number in range(5)
]
ANSWERS = (
    says("claims", answer={"claims": ["Bikes are repaired in Dublin."]}),
    says("questions", answer={"questions": [{"question": "Where are bikes repaired?", "noncommittal": False}]}),
    says("verdict", answer={"yes": 0.8, "no": 0.2}),
    says("usefulness_for_reference", answer="yes"),
    says("relevant_sentences", answer={"relevant": [1]}),
    says("accuracy_1", answer="4"),
    says("accuracy_2", answer="2"),
)
METRICS = (
    "faithfulness",
    "answer_relevancy",
    "context_precision",
    "context_relevancy",
    "nv_accuracy",
    "noise_sensitivity",
)


def evaluate(folder: Path, *answers: Mapping[str, Any], **options: Any) -> Path:
    """Run the flow over ROWS with a scripted judge, and return the run folder."""
    source = folder / "rows.jsonl"
    source.write_text("\n".join(json.dumps(row) for row in ROWS), encoding="utf-8")
    values = {"source": str(source), "metrics": METRICS, "out": str(folder / "run")} | options
    config = RunConfig.model_validate({"judge": script(folder, *(answers or ANSWERS)).model_dump()} | values)
    return Path(run_evaluation(config).folder)


def scores(run: Path) -> dict[tuple[str, str], tuple[Any, ...]]:
    rows = pq.read_table(run / "scores.parquet").to_pylist()
    return {(row["row_id"], row["metric"]): (row["value"], row["status"], row["reason"]) for row in rows}


@pytest.fixture(scope="module")
def run(server_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a finished run, which the tests of this module read."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ASSAY_HOME", str(server_home))
        patch.setenv("PREFECT_LOGGING_LEVEL", "CRITICAL")
        with use_server(ensure_local_server(server_home)):
            return evaluate(tmp_path_factory.mktemp("finished"), slices=["topic"])


def test_every_cell_has_a_score_or_a_reason(run: Path) -> None:
    cells = scores(run)
    assert set(cells) == {(row["id"], metric) for row in ROWS for metric in METRICS}
    assert all(value is not None or reason for value, _, reason in cells.values())
    assert cells["r0", "faithfulness"] == (1.0, "scored", None)
    assert cells["r0", "nv_accuracy"] == (0.75, "scored", None)
    assert cells["r0", "noise_sensitivity"] == (0.0, "scored", None)


@pytest.mark.usefixtures("prefect_server")
def test_runs_are_recorded_in_the_history(run: Path, tmp_path: Path) -> None:
    (recorded,) = (each for each in Catalogue().runs("rows") if each.folder == str(run))
    assert recorded.run_id == json.loads((run / "run.json").read_text())["run_id"]
    assert (recorded.status, recorded.rows, recorded.deployment) == ("completed", 5, "")
    assert {each.metric for each in recorded.metrics if not each.slice_column} == set(METRICS)
    history, page = tmp_path / "mine.db", tmp_path / "pages" / "{name}.html"
    own: dict[str, Any] = {"history": str(history), "name": "own", "history_page": str(page)}
    start = RunStart("schedule", datetime(2026, 11, 18, 6, tzinfo=UTC))
    with start.apply():
        evaluate(tmp_path, system_version="7", out=str(tmp_path / "second"), **own)
    (second,) = Catalogue(str(history)).runs("own")
    assert (second.trigger, second.due, recorded.trigger, recorded.due) == (start.trigger, start.due, "", None)
    assert second.versions["system"] == "7"
    assert "second" in (tmp_path / "pages" / "own.html").read_text()


def test_every_table_opens_as_a_data_set(run: Path, tmp_path: Path) -> None:
    tables = [run / "scores.parquet", *sorted((run / "stages").glob("*.parquet"))]
    assert len(tables) == 8
    for table in tables:
        loaded = load_dataset("parquet", data_files=str(table), split="train", cache_dir=str(tmp_path / "cache"))
        assert len(loaded) == pq.read_metadata(table).num_rows


def test_manifest_has_stages_and_usage(run: Path) -> None:
    manifest = json.loads((run / "run.json").read_text())
    assert (manifest["status"], manifest["rows"], manifest["rows_read"]) == ("completed", 5, 5)
    assert manifest["judge"]["backend"] == "scripted"
    assert manifest["stages"]["claims"]["questions"] == 10
    assert manifest["usage"]["questions"] == sum(stage["questions"] for stage in manifest["stages"].values())
    assert {"python", "prefect", "rag-assay"} <= set(manifest["versions"])


def test_the_summary_has_means_intervals_and_counts(run: Path) -> None:
    summary = json.loads((run / "summary.json").read_text())
    by_metric = {metric["metric"]: metric for metric in summary["metrics"]}
    assert list(by_metric) == list(METRICS)
    accuracy = by_metric["nv_accuracy"]
    assert (accuracy["scored"], accuracy["undefined"], accuracy["failed"]) == (5, 0, 0)
    distribution = accuracy["distribution"]
    assert 0.4 < distribution["interval"]["low"] < distribution["mean"] < distribution["interval"]["high"] < 0.9
    assert distribution["note"] == "5 of 5 rows at 0.75; true mean 0.47 to 0.83"


def test_report_is_written(run: Path) -> None:
    assert (run / "report.html").read_text().lstrip().lower().startswith("<!doctype html>")


@pytest.mark.usefixtures("prefect_server")
def test_stages_have_their_names_in_prefect(tmp_path: Path) -> None:
    run = evaluate(tmp_path, tables=str(tmp_path / "tables"))  # a stage whose results are all stored is no task
    flow_run_id = json.loads((run / "run.json").read_text())["run_id"]
    expected = {
        "samples",
        *(f"{stage}-0" for stage in ("claims", "questions", "ratings", "verdicts", "similarity", "languages")),
        *("aggregation-0", "diagnosis-0"),
        "reporting",
    }

    def read_names() -> set[str]:
        with get_client(sync_client=True) as client:
            task_runs = client.read_task_runs(flow_run_filter=FlowRunFilter(id=FlowRunFilterId(any_=[flow_run_id])))
        return {task_run.name for task_run in task_runs}

    wait_until(lambda: read_names() >= expected, "the records of the task runs")
    assert read_names() == expected


@pytest.mark.usefixtures("prefect_stub")
def test_shards_change_only_the_number_of_tables(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    (tmp_path / "shards").mkdir()
    whole, shards = evaluate(tmp_path / "whole"), evaluate(tmp_path / "shards", shard_rows=2)
    assert len(json.loads((shards / "run.json").read_text())["stages"]["samples"]["digests"]) == 3
    assert scores(whole) == scores(shards)
    assert (whole / "summary.json").read_bytes() == (shards / "summary.json").read_bytes()


@pytest.mark.usefixtures("prefect_stub")
def test_verdicts_may_count_by_probability(tmp_path: Path) -> None:
    assert scores(evaluate(tmp_path, verdict="probability"))["r0", "faithfulness"] == (0.8, "scored", None)


@pytest.mark.usefixtures("prefect_stub")
def test_unusable_replies_fail_their_cells_and_no_others(tmp_path: Path) -> None:
    claim = "Bikes are repaired in Dublin 2."
    cells = scores(evaluate(tmp_path, fails("claims", claim, reason="the reply was cut off"), *ANSWERS))
    failed = {key for key, (_, status, _) in cells.items() if status == "failed"}
    assert failed == {("r2", "faithfulness"), ("r2", "noise_sensitivity")}
    assert cells["r2", "faithfulness"] == (None, "failed", "the reply was cut off")


@pytest.mark.usefixtures("prefect_stub")
def test_run_that_cannot_start_replaces_the_figures_of_an_earlier_result(tmp_path: Path) -> None:
    file = tmp_path / "assay.prom"
    file.write_text("assay_rows 99\n", encoding="utf-8")
    config = RunConfig(source=str(tmp_path / "nowhere.jsonl"), metrics_file=str(file))
    with pytest.raises(SourceError):
        run_evaluation(config)
    written = file.read_text(encoding="utf-8")
    assert 'assay_run_failed{deployment="",index=""} 1.0' in written
    assert "assay_rows" not in written


@pytest.mark.usefixtures("prefect_stub")
def test_run_with_too_few_scores_fails_and_keeps_its_results(tmp_path: Path) -> None:
    all_cut = (fails("claims"), *ANSWERS[1:])
    metrics_file = tmp_path / "assay-none.prom"
    with OtlpReceiver() as receiver:
        with pytest.raises(FailedCellsError) as caught:
            evaluate(
                tmp_path,
                *all_cut,
                metrics=("faithfulness", "answer_similarity"),
                metrics_file=str(tmp_path / "assay-{index}.prom"),
                sinks={"otlp": receiver.url},
            )
        events = [attributes_of(record) for record in receiver.logs]
        assert Counter("error.type" in event for event in events) == {True: 5, False: 5}
        written = metrics_file.read_text()
        assert 'assay_run_failed{deployment="",index=""} 1.0' in written
        assert 'assay_cells{deployment="",index="",metric="faithfulness",state="failed"} 5.0' in written
        assert caught.value.failures == ("faithfulness: 5 of 5 cells failed, most often: the reply was cut off",)
        run = FinishedRun(caught.value.folder)
        assert run.record.failures == ("faithfulness: 5 of 5 cells failed, most often: the reply was cut off",)
        assert "too few scores: faithfulness: 5 of 5 cells failed" in (run.folder / "report.html").read_text()
        assert sum(status == "scored" for _, status, _ in scores(run.folder).values()) == 5
        with get_client(sync_client=True) as client:
            state = client.read_flow_run(UUID(run.run_id)).state
        assert state is not None
        assert state.is_failed()
        assert "faithfulness: 5 of 5 cells failed" in (state.message or "")
        with pytest.raises(FailedCellsError):  # fails again, for the same reason
            run_rerun(parse_rerun_request(run=str(run.folder), out=str(tmp_path / "again")))
        script(tmp_path, *ANSWERS)
        assert run_rerun(parse_rerun_request(run=str(run.folder), out=str(tmp_path / "mended"))).failures == ()
        assert 'assay_run_failed{deployment="",index=""} 0.0' in metrics_file.read_text()  # a rerun replaces the file
    one_cut = (fails("claims", "Bikes are repaired in Dublin 2."), *ANSWERS)
    assert evaluate(tmp_path, *one_cut, fail_on_failed=0.21)
    with pytest.raises(FailedCellsError, match=r"faithfulness: 1 of 5 cells failed"):
        evaluate(tmp_path, *one_cut, fail_on_failed=0.2)


@pytest.mark.usefixtures("prefect_stub")
def test_bad_rows_stop_the_run_or_are_left_out_and_counted(tmp_path: Path) -> None:
    source = tmp_path / "bad.jsonl"
    source.write_text(json.dumps(ROWS[0]) + "\n{broken\n" + json.dumps({**ROWS[1], "response": None}), encoding="utf-8")
    with pytest.raises(BadRowsError, match=r"2"):
        evaluate(tmp_path, source=str(source))
    assert not (tmp_path / "run").exists()  # the first rows are checked before anything starts
    manifest = json.loads((evaluate(tmp_path, source=str(source), on_bad_row="skip") / "run.json").read_text())
    assert (manifest["rows"], manifest["rows_read"], manifest["bad_row_count"]) == (2, 3, 1)
    assert [bad["number"] for bad in manifest["bad_rows"]] == [2]  # a missing response is no bad row


@pytest.mark.usefixtures("prefect_stub")
def test_a_folder_with_other_files_is_refused_and_untouched(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "thesis.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(RunFolderError, match=r"thesis\.txt"):
        evaluate(tmp_path, out=str(folder))
    assert [path.name for path in folder.iterdir()] == ["thesis.txt"]


@pytest.mark.usefixtures("prefect_stub")
def test_a_smaller_run_into_the_same_folder_leaves_no_table_of_the_larger_one(tmp_path: Path) -> None:
    evaluate(tmp_path)
    run = evaluate(tmp_path, metrics=("answer_similarity",))
    assert {path.stem for path in (run / "stages").iterdir()} == {"samples", "similarity", "languages"}


def test_runs_of_the_same_second_have_different_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folders = {choose_folder(FolderPlan(None, "my-log")) for _ in range(3)}
    assert len(folders) == 3
    assert all(folder.path.parent == tmp_path / "runs" and "-my-log" in folder.path.name for folder in folders)


def test_a_run_folder_elsewhere_is_refused() -> None:
    with pytest.raises(ConfigError, match="must be a folder of this machine, got s3://bucket/run"):
        choose_folder(FolderPlan("s3://bucket/run", "log"))


@pytest.mark.usefixtures("prefect_stub")
def test_folder_in_use_by_another_run_is_refused(tmp_path: Path) -> None:
    with RunFolder(tmp_path / "run").lock(), pytest.raises(RunFolderError, match="another run is writing"):
        evaluate(tmp_path)


@pytest.mark.usefixtures("prefect_stub")
def test_a_data_set_in_memory_is_evaluated(tmp_path: Path) -> None:
    config = RunConfig(metrics=("string_similarity",), out=str(tmp_path / "run"))
    dataset = Dataset.from_dict({"answer": ["same", "abcd"], "ground_truth": ["same", "wxyz"]})
    evaluation = run_evaluation(config, dataset)
    assert evaluation.rows == 2
    assert sorted(value for value, _, _ in scores(Path(evaluation.folder)).values()) == [0.0, 1.0]
