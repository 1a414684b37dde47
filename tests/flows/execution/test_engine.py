"""Shards of a run: a limited number in flight, results in the order of the rows, and what is reported."""

import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from flows.config.run_config import RunConfig
from flows.execution import engine
from flows.execution.engine import compute_rows
from flows.execution.run import Run
from flows.execution.runners import max_concurrent_shards
from flows.planning.planner import plan_without_data
from metric_core.stages import Stage
from tasks.engine.schedule import Schedule, open_schedule
from tasks.engine.stage_step import EnginePlan
from tasks.engine.worker_terms import WorkerTerms
from tasks.rows.computed_tables import RunTables
from tasks.rows.row_store import RowStore
from tasks.rows.shard import Shard
from tasks.rows.stage_rows import StageRows
from tasks.runtime import progress
from tests.tasks.engine.small_runs import Asked, claims_table, compute_shard, make_plan, write_shards

ROWS = {f"r{number:03}": f"word{number}" for number in range(100)}


class Counted:
    """Shards that are computed once their results are awaited, and the number of those that wait."""

    def __init__(self) -> None:
        self.asked = Asked()
        self.submitted: list[int] = []
        self.waiting = 0
        self.most = 0

    def start(self, shard: Shard, schedule: Schedule, known: Mapping[Stage, StageRows]) -> Callable[[], Shard]:
        """Return a function that waits for a shard that is computed in this process."""
        assert not known  # nothing is stored
        return self._wait(shard.number, lambda: compute_shard(shard, schedule, self.asked))

    def submit(self, shard: Shard, number: int, plan: EnginePlan, terms: WorkerTerms) -> Any:
        """Return a shard that is being computed in another process."""
        shard, plan, terms = pickle.loads(pickle.dumps((shard, plan, terms)))
        assert terms.processes == 2

        def compute() -> Shard:
            with open_schedule(plan, RowStore(plan.tables), 2) as schedule:
                return compute_shard(shard, schedule, self.asked)

        return SimpleNamespace(result=self._wait(number, compute), wait=lambda timeout: None)  # noqa: ARG005 a future has this argument

    def _wait(self, number: int, compute: Callable[[], Shard]) -> Callable[[], Shard]:
        self.submitted.append(number)
        self.waiting += 1
        self.most = max(self.most, self.waiting)

        def result() -> Shard:
            self.waiting -= 1
            return compute()

        return result


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> Counted:
    """Return shards that need no server of Prefect."""
    queue = Counted()
    monkeypatch.setattr(engine, "start_shard", queue.start)
    monkeypatch.setattr(engine, "SHARD_TASK", queue)
    monkeypatch.setattr(WorkerTerms, "of_run", lambda _plan, _models, processes: WorkerTerms(processes, {}))
    return queue


def compute(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    rows: Mapping[str, str],
    runner: str = "threads",
    refresh: Sequence[Stage] = (),
) -> RunTables:
    """Compute rows, two per shard."""
    config = RunConfig.model_validate({"runner": runner, "workers": 2, "shard_rows": 2})
    run = SimpleNamespace(plan=SimpleNamespace(storage=plan_without_data(config).storage, models=None), models=None)
    plan = make_plan(str(folder), shard_rows=2, refresh=refresh)
    monkeypatch.setattr(engine, "engine_plan", lambda _: plan)
    return compute_rows(cast("Run", run), write_shards(plan, rows))


@pytest.mark.parametrize("runner", ["threads", "dask"])
def test_number_of_shards_in_flight_is_limited(
    runner: str, queue: Counted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = compute(tmp_path, monkeypatch, ROWS, runner)
    config = RunConfig.model_validate({"runner": runner, "workers": 2, "shard_rows": 2})
    assert queue.most == max_concurrent_shards(plan_without_data(config).storage) < len(queue.submitted) == 50
    found = [row_id for shard in tables.shards(Stage.CLAIMS) for row_id in shard["row_id"].to_pylist()]
    assert found == list(ROWS)
    assert tables.usage(Stage.CLAIMS).questions == len(ROWS)


def test_a_run_of_which_all_is_known_submits_nothing(
    queue: Counted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compute(tmp_path, monkeypatch, ROWS)
    queue.submitted.clear()
    tables = compute(tmp_path, monkeypatch, ROWS)
    assert queue.submitted == []
    usage = tables.usage(Stage.CLAIMS)
    assert (usage.questions, usage.stored) == (len(ROWS), len(ROWS))


def test_rows_that_changed_in_many_shards_are_computed_in_few(
    queue: Counted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compute(tmp_path, monkeypatch, ROWS)
    queue.submitted.clear()
    changed = ROWS | dict.fromkeys(list(ROWS)[::20], "another response")
    tables = compute(tmp_path, monkeypatch, changed)
    assert queue.submitted == [0, 1, 2]  # five rows, two per shard
    whole = [row for shard in tables.shards(Stage.CLAIMS) for row in shard.to_pylist()]
    assert whole == claims_table(changed).to_pylist()


@pytest.fixture
def reports() -> Iterator[list[tuple[Stage, int, int | None]]]:
    received: list[tuple[Stage, int, int | None]] = []
    with progress.listen(lambda *report: received.append(report)):
        yield received


@pytest.mark.parametrize("runner", ["threads", "dask"])
def test_shards_of_other_processes_are_reported_in_this_process(
    runner: str,
    queue: Counted,
    reports: list[tuple[Stage, int, int | None]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compute(tmp_path, monkeypatch, dict(list(ROWS.items())[:3]), runner)
    assert len(queue.submitted) == 2
    expected = [
        (stage, rows, total)
        for stage in (Stage.CLAIMS, Stage.VERDICTS)
        for rows, total in ((0, 3), (2, None), (1, None))
    ]
    assert sorted(reports, key=lambda report: str(report[0])) == ([] if runner == "threads" else expected)


def test_a_stage_whose_results_are_all_known_has_no_rows_to_report(
    queue: Counted, reports: list[tuple[Stage, int, int | None]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = dict(list(ROWS.items())[:2])
    compute(tmp_path, monkeypatch, rows)
    compute(tmp_path, monkeypatch, rows, "dask", refresh=[Stage.VERDICTS])
    assert len(queue.submitted) == 2
    assert reports == [(Stage.CLAIMS, 0, 0), (Stage.VERDICTS, 0, 2), (Stage.VERDICTS, 2, None)]
