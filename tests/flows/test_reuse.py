"""Results of rows are reused until something changes that they depend on."""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

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
from tests.tasks.builders import says, script
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


@pytest.fixture
def runs(prefect_server: str, tmp_path: Path) -> Runs:
    """Return runs with a new folder of tables."""
    del prefect_server
    return Runs(tmp_path)


def test_changed_judge_recomputes_its_stages(runs: Runs) -> None:
    runs.evaluate()
    changed = (*ANSWERS[:2], says("verdict", answer="no"), ANSWERS[3])
    assert runs.recomputed_stages(answers=changed) >= {"verdicts"}


def test_new_metric_recomputes_only_its_stages(runs: Runs) -> None:
    runs.evaluate(metrics=("faithfulness",))
    assert runs.recomputed_stages(metrics=("faithfulness", "answer_relevancy")) == {"questions", "similarity"}


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


def test_rows_of_another_source_and_of_an_earlier_night_are_found(runs: Runs, tmp_path: Path) -> None:
    monday, tuesday = make_rows(6), make_rows(6, n2="another")
    runs.evaluate(monday)
    runs.evaluate(tuesday)
    half = tmp_path / "half.jsonl"
    half.write_text("\n".join(map(json.dumps, [tuesday[2], *monday[3:]])), encoding="utf-8")
    assert runs.recomputed_stages(monday) == set()
    assert runs.recomputed_stages(source=str(half), cache=str(tmp_path / "empty.db")) == set()


def test_refresh_recomputes_the_named_stage(runs: Runs) -> None:
    runs.evaluate()
    assert runs.recomputed_stages(refresh=("claims",)) == {"claims", "verdicts"}  # claims might have changed
    stages = json.loads((runs.last / "run.json").read_text())["stages"]
    assert stages["claims"]["stored"] == 0
    assert stages["verdicts"]["stored"] == stages["verdicts"]["questions"] > 0


def test_pending_answers_are_cached_even_if_the_run_fails(tmp_path: Path) -> None:
    path = tmp_path / "answers.db"
    config = RunConfig(cache=str(path))
    path.mkdir()
    with suppress(JudgeError), running_judges(config):
        open_cache(config.cache).add("test", {b"key": b"paid"})
        path.rmdir()
        raise JudgeError("the judge is lost")
    assert AnswerCache(engine_url(str(path))).find([b"key"], bytes) == {b"key": b"paid"}
