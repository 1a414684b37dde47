"""Few shards are on their way at a time; each goes on in its turn, and their tables come in the order of the shards."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from flows.config.run_config import RunConfig
from flows.execution import shards
from flows.execution.runners import max_concurrent_shards
from flows.execution.shards import Shards, Submitted, Way
from metric_core.stages import Stage
from tasks.runtime import progress
from tasks.runtime.usage import StageUsage
from tasks.tables.table_store import StageRef


class Engine:
    """Gives futures, and knows how many of them nobody has asked for yet."""

    def __init__(self) -> None:
        self.waiting = 0
        self.most = 0

    def submit(self, stage: Stage, number: int, name: str = "Completed") -> Any:
        self.waiting += 1
        self.most = max(self.most, self.waiting)
        return SimpleNamespace(result=lambda: self._result(stage, number), state=SimpleNamespace(name=name))

    def _result(self, stage: Stage, number: int) -> StageRef:
        self.waiting -= 1
        usage = StageUsage(questions=4, requests=4)
        return StageRef(stage=stage, path=str(number), digest="", rows=1, schema_version=1, usage=usage)


def way(engine: Engine, number: int, *levels: tuple[Stage, ...]) -> Way:
    found: list[StageRef] = []
    for level in levels:
        done = yield {stage: Submitted(engine.submit(stage, number), 3) for stage in level}
        assert tuple(done) == level
        found += done.values()
    return found


def test_a_window_moves_over_the_shards_whatever_their_number() -> None:
    engine, config = Engine(), RunConfig(workers=2)
    window = Shards(config, {})
    for number in range(50):
        window.add(way(engine, number, (Stage.CLAIMS, Stage.RATINGS), (Stage.VERDICTS,)))
    refs = window.finished()
    assert engine.most == 2 * max_concurrent_shards(config) < 50
    assert [(int(ref.path), ref.stage) for ref in refs] == [
        (number, stage) for number in range(50) for stage in (Stage.CLAIMS, Stage.RATINGS, Stage.VERDICTS)
    ]


def test_a_shard_with_little_to_do_does_not_wait_for_those_before_it_and_keeps_its_place() -> None:
    engine = Engine()
    window = Shards(RunConfig(workers=2), {})
    window.add(way(engine, 0, (Stage.CLAIMS,), (), (Stage.VERDICTS,)))
    window.add(way(engine, 1))
    window.add(way(engine, 2, (Stage.CLAIMS,)))
    assert engine.waiting == 2
    assert [int(ref.path) for ref in window.finished()] == [0, 0, 2]


def test_what_was_kept_cost_this_run_nothing() -> None:
    ref = shards.wait_for_ref(Engine().submit(Stage.CLAIMS, 0, shards.CACHED))
    assert ref.usage == StageUsage(questions=4, stored=4)


@pytest.fixture
def told() -> Iterator[list[tuple[Stage, int, int | None]]]:
    reports: list[tuple[Stage, int, int | None]] = []
    with progress.listen(lambda *report: reports.append(report)):
        yield reports


@pytest.mark.parametrize("engine", ["threads", "dask"])
def test_stages_of_other_processes_are_reported_here(engine: str, told: list[tuple[Stage, int, int | None]]) -> None:
    window = Shards(RunConfig.model_validate({"runner": engine}), {Stage.CLAIMS: 6})
    for number in range(2):
        window.add(way(Engine(), number, (Stage.CLAIMS,)))
    window.finished()
    expected = [(Stage.CLAIMS, 0, 6), (Stage.CLAIMS, 3, None), (Stage.CLAIMS, 3, None)]
    assert told == ([] if engine == "threads" else expected)
