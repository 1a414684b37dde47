"""The shard queue: a limited number of shards in flight, and tables in the order of the shards."""

from collections.abc import Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from flows.config.run_config import RunConfig
from flows.execution.runners import max_concurrent_shards
from flows.execution.shards import Shard, ShardQueue, Submitted
from flows.planning.planner import plan_storage
from metric_core.stages import Stage
from tasks.options.run_model_options import RunModelOptions
from tasks.runtime import progress
from tasks.runtime.usage import StageUsage
from tasks.tables.table_store import StageRef


class Engine:
    """An engine that counts futures whose result has not been read."""

    def __init__(self) -> None:
        self.waiting = 0
        self.most = 0

    def submit(self, stage: Stage, number: int) -> Any:
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        return SimpleNamespace(result=lambda: self._result(stage, number))

    def _result(self, stage: Stage, number: int) -> StageRef:
        self.waiting -= 1
        usage = StageUsage(questions=4, requests=4)
        return StageRef(stage=stage, path=str(number), digest="", rows=1, schema_version=1, usage=usage)


class Work(Shard):
    """A shard that has some of the stages of each level."""

    def __init__(self, engine: Engine, number: int, *stages: Stage) -> None:
        super().__init__(number, {})
        self._engine = engine
        self._stages = stages
        self._level: tuple[Stage, ...] = ()

    def submit(self, level: Sequence[Stage]) -> Mapping[Stage, Submitted]:
        self._level = tuple(stage for stage in level if stage in self._stages)
        return {stage: Submitted(self._engine.submit(stage, self.number), 3) for stage in self._level}

    def collect(self, done: Mapping[Stage, StageRef]) -> None:
        assert tuple(done) == self._level
        super().collect(done)


def test_number_of_shards_in_flight_is_limited() -> None:
    engine, storage = Engine(), plan_storage(RunConfig(workers=2))
    stages = (Stage.CLAIMS, Stage.RATINGS, Stage.VERDICTS)
    queue = ShardQueue(storage, RunModelOptions(), [stages[:2], stages[2:]], {})
    refs = queue.run(Work(engine, number, *stages) for number in range(50))
    assert engine.most == 2 * max_concurrent_shards(storage) < 50
    assert [(int(ref.path), ref.stage) for ref in refs] == [
        (number, stage) for number in range(50) for stage in (Stage.CLAIMS, Stage.RATINGS, Stage.VERDICTS)
    ]


def test_short_shards_overtake_others_and_tables_stay_in_order() -> None:
    engine = Engine()
    storage = plan_storage(RunConfig(workers=2, shard_rows=1))
    levels = [(Stage.CLAIMS,), (Stage.RATINGS,), (Stage.VERDICTS,)]
    queue = ShardQueue(storage, RunModelOptions(), levels, {})
    shards = [Work(engine, 0, Stage.CLAIMS, Stage.VERDICTS), Work(engine, 1), Work(engine, 2, Stage.CLAIMS)]
    waiting: list[int] = []

    def in_turn() -> Iterator[Shard]:
        yield from shards
        waiting.append(engine.waiting)

    assert [int(ref.path) for ref in queue.run(in_turn())] == [0, 0, 2]
    assert waiting == [2]


@pytest.fixture
def reports() -> Iterator[list[tuple[Stage, int, int | None]]]:
    received: list[tuple[Stage, int, int | None]] = []
    with progress.listen(lambda *report: received.append(report)):
        yield received


@pytest.mark.parametrize("engine", ["threads", "dask"])
def test_stages_of_other_processes_are_reported_in_this_process(
    engine: str, reports: list[tuple[Stage, int, int | None]]
) -> None:
    storage = plan_storage(RunConfig.model_validate({"runner": engine}))
    queue = ShardQueue(storage, RunModelOptions(), [(Stage.CLAIMS,)], {Stage.CLAIMS: 6})
    queue.run(Work(Engine(), number, Stage.CLAIMS) for number in range(2))
    expected = [(Stage.CLAIMS, 0, 6), (Stage.CLAIMS, 3, None), (Stage.CLAIMS, 3, None)]
    assert reports == ([] if engine == "threads" else expected)
