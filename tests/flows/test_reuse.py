"""Results of rows are reused until something changes that they depend on."""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId

from flows.config.run_config import RunConfig
from flows.evaluate import run_evaluation
from flows.execution.run import running_judges
from metric_core.errors import FailedCellsError, JudgeError
from tasks.cache.answer_cache import AnswerCache
from tasks.opening.caches import open_cache
from tasks.runtime.database_address import engine_url
from tests.tasks.builders import fails, says, script
from tests.waiting import wait_until

pytestmark = [pytest.mark.prefect, pytest.mark.models]

ROWS: Sequence[Mapping[str, Any]] = [
    {
        "id": f"r{number}",
        "user_input": f"Where are bikes number {number} repaired?",
        "response": f"Bikes are repaired at door {number}.",
        "retrieved_contexts": [f"Repairs {number} happen in Dublin.", "The canteen serves soup."],
        "reference": f"In Dublin, at door {number}.",
    }
    for number in range(4)
]
ANSWERS = (
    says("claims", answer={"claims": ["Bikes are repaired in Dublin."]}),
    says("questions", answer={"questions": [{"question": "Where are bikes repaired?", "noncommittal": False}]}),
    says("verdict", answer={"yes": 0.8, "no": 0.2}),
    says("usefulness_for_reference", answer="yes"),
)
METRICS = ("faithfulness", "answer_relevancy", "context_precision")
REUSABLE = {"claims", "questions", "verdicts", "similarity"}


class Runs:
    """Runs over ROWS with a scripted judge and shared tables."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._number = 0

    @property
    def last(self) -> Path:
        """The folder of the last run."""
        return self._folder / f"run-{self._number}"

    def evaluate(
        self, rows: Sequence[Mapping[str, Any]] = ROWS, answers: Iterable[Mapping[str, Any]] = ANSWERS, **options: Any
    ) -> Path:
        """Run the flow, and return the run folder, also of a run in which all cells failed."""
        self._number += 1
        source = self._folder / "rows.jsonl"
        source.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
        judge = script(self._folder, *answers).model_dump()
        values = {
            "source": str(source),
            "metrics": METRICS,
            "judge": judge,
            "tables": str(self._folder / "tables"),
            "out": str(self.last),
        }
        try:
            return Path(run_evaluation(RunConfig.model_validate(values | options)).folder)
        except FailedCellsError as error:
            return Path(error.folder)

    def recomputed_stages(self, *arguments: Any, **options: Any) -> set[str]:
        """Run the flow, and return the reusable stages that computed something."""
        return {name.partition("-")[0] for name in self.task_runs(*arguments, **options)} & REUSABLE

    def task_runs(self, *arguments: Any, **options: Any) -> set[str]:
        """Run the flow, and return the names of its task runs."""
        folder = self.evaluate(*arguments, **options)
        run_id = json.loads((folder / "run.json").read_text())["run_id"]
        chosen = FlowRunFilter(id=FlowRunFilterId(any_=[run_id]))

        def names() -> set[str]:  # states of task runs reach the server with a delay
            with get_client(sync_client=True) as client:
                task_runs = client.read_task_runs(flow_run_filter=chosen)
            found = {run.name for run in task_runs}
            is_complete = "reporting" in found and all(run.state and run.state.is_final() for run in task_runs)
            return found if is_complete else set()

        return wait_until(names, "the records of the task runs")


def count_asked(folder: Path, stage: str) -> int:
    """Return the number of questions of a stage that were asked."""
    entry = json.loads((folder / "run.json").read_text())["stages"][stage]
    asked: int = entry["questions"] - entry["stored"]
    return asked


@pytest.fixture
def runs(prefect_server: str, tmp_path: Path) -> Runs:
    """Return runs with a new folder of tables."""
    del prefect_server
    return Runs(tmp_path)


def test_second_run_computes_nothing_and_has_the_same_scores(runs: Runs) -> None:
    first = runs.evaluate()
    assert runs.recomputed_stages() == set()
    second = first.with_name("run-2")
    assert pq.read_table(first / "scores.parquet").equals(pq.read_table(second / "scores.parquet"))


def test_changed_judge_recomputes_its_stages(runs: Runs) -> None:
    runs.evaluate()
    changed = (*ANSWERS[:2], says("verdict", answer="no"), ANSWERS[3])
    assert runs.recomputed_stages(answers=changed) >= {"verdicts"}


def test_new_metric_recomputes_only_its_stages(runs: Runs) -> None:
    runs.evaluate(metrics=("faithfulness",))
    assert runs.recomputed_stages(metrics=("faithfulness", "answer_relevancy")) == {"questions", "similarity"}


def test_changed_row_asks_only_changed_questions(runs: Runs) -> None:
    runs.evaluate(shard_rows=2)
    changed = [*ROWS[:3], {**ROWS[3], "response": "At the north gate."}]
    folder = runs.evaluate(changed, shard_rows=2)
    assert json.loads((folder / "run.json").read_text())["stages"]["claims"]["questions"] == 4
    assert count_asked(folder, "claims") == 1


def make_rows(count: int, **changes: str) -> list[Mapping[str, Any]]:
    """Return rows that have nothing in common, some of them with another response."""
    rows = [
        {"id": f"n{n}", **{name: f"{name} {n}." for name in ("user_input", "response", "reference")}}
        for n in range(count)
    ]
    return [
        {**row, "retrieved_contexts": [f"context {row['id']}"], "response": changes.get(row["id"], row["response"])}
        for row in rows
    ]


def test_a_night_on_which_little_changed_computes_only_that(runs: Runs, tmp_path: Path) -> None:
    runs.evaluate(make_rows(12), shard_rows=4)
    changed = make_rows(12, n1="another", n10="different")
    rows = [{**changed[0], "id": "new"}, *changed]  # all shards are other ones
    tasks = runs.task_runs(rows, shard_rows=4, cache=str(tmp_path / "empty.db"))
    assert {name for name in tasks if name.startswith("claims")} == {"claims-0"}
    folder = runs.last
    assert count_asked(folder, "claims") == 3  # the first row is new, two have changed
    assert json.loads((folder / "run.json").read_text())["stages"]["claims"]["questions"] == 13
    whole = runs.evaluate(rows, shard_rows=100, tables=str(tmp_path / "others"))
    for table in ("scores.parquet", "stages/claims.parquet", "stages/verdicts.parquet", "stages/similarity.parquet"):
        assert pq.read_table(folder / table).equals(pq.read_table(whole / table))
    assert runs.recomputed_stages(rows, shard_rows=4) == set()


def test_rows_of_another_source_and_of_an_earlier_night_are_found(runs: Runs, tmp_path: Path) -> None:
    monday, tuesday = make_rows(6), make_rows(6, n2="another")
    runs.evaluate(monday)
    runs.evaluate(tuesday)
    half = tmp_path / "half.jsonl"
    half.write_text("\n".join(map(json.dumps, [tuesday[2], *monday[3:]])), encoding="utf-8")
    assert runs.recomputed_stages(monday) == set()
    assert runs.recomputed_stages(source=str(half), cache=str(tmp_path / "empty.db")) == set()


def test_rows_with_failed_answers_are_asked_about_again_and_no_others(runs: Runs) -> None:
    broken = (*ANSWERS[:2], fails("verdict", "context n3", reason="cut off"), *ANSWERS[2:])
    runs.evaluate(make_rows(8), broken, shard_rows=8)
    for _ in range(2):  # and a row that failed again is not stored either
        assert count_asked(runs.evaluate(make_rows(8), broken, shard_rows=8), "verdicts") == 1
    mended = runs.evaluate(make_rows(8), ANSWERS, shard_rows=8)
    assert json.loads((mended / "run.json").read_text())["stages"]["verdicts"]["failed"] == {}


def test_refresh_recomputes_the_named_stage(runs: Runs) -> None:
    runs.evaluate()
    assert runs.recomputed_stages(refresh=("claims",)) == {"claims", "verdicts"}  # claims might have changed
    stages = json.loads((runs.last / "run.json").read_text())["stages"]
    assert stages["claims"]["stored"] == 0
    assert stages["verdicts"]["stored"] == stages["verdicts"]["questions"] > 0


def test_failed_questions_are_asked_again_by_the_next_run(runs: Runs) -> None:
    broken = (*ANSWERS[:2], fails("verdict", reason="cut off"), ANSWERS[3])
    runs.evaluate(answers=broken)
    assert runs.recomputed_stages(answers=broken) == {"verdicts"}


def test_damaged_results_are_recomputed(runs: Runs, tmp_path: Path) -> None:
    first = runs.evaluate()
    (damaged,) = (tmp_path / "tables" / "rows" / "verdicts").rglob("*.parquet")
    damaged.write_bytes(damaged.read_bytes()[:-30])
    assert runs.recomputed_stages() == {"verdicts"}
    assert pq.read_table(first / "scores.parquet").equals(pq.read_table(tmp_path / "run-2" / "scores.parquet"))


def test_pending_answers_are_cached_even_if_the_run_fails(tmp_path: Path) -> None:
    path = tmp_path / "answers.db"
    config = RunConfig(cache=str(path))
    path.mkdir()
    with suppress(JudgeError), running_judges(config):
        open_cache(config.cache).add("test", {b"key": b"paid"})
        path.rmdir()
        raise JudgeError("the judge is lost")
    assert AnswerCache(engine_url(str(path))).find([b"key"], bytes) == {b"key": b"paid"}
