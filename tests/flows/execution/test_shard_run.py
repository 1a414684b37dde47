"""Shards of a run: what they submit, and that the rows of a finished shard leave memory."""

import gc
import weakref
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

from flows.execution.shard_run import ShardRun
from flows.execution.shards import Submitted
from flows.execution.stage_submitter import StageSubmitter
from metric_core.stages import Stage
from tasks.tables.table_store import StageRef


def ref(stage: Stage) -> StageRef:
    return StageRef(stage=stage, path=str(stage), digest="", rows=7, schema_version=1)


class Windows:
    """Windows of a shard."""


class Submitter:
    """A submitter that notes what it submits and which windows are closed."""

    def __init__(self) -> None:
        self.submitted: list[tuple[Stage, int]] = []
        self.windows: weakref.ref[Windows] | None = None
        self.closed = 0

    def open_windows(self, _tables: Mapping[Stage, StageRef], _stages: object) -> Windows:
        windows = Windows()
        self.windows = weakref.ref(windows)
        return windows

    def submit(self, stage: Stage, _tables: object, _shard: int, rows: int, _windows: Windows) -> Submitted:
        self.submitted.append((stage, rows))
        return Submitted(cast("Any", SimpleNamespace(stage=stage)), rows)

    def close_windows(self, _windows: Windows) -> None:
        self.closed += 1


def test_only_missing_stages_are_submitted_and_finished_rows_leave_memory() -> None:
    submitter = Submitter()
    kept = {Stage.SAMPLES: ref(Stage.SAMPLES), Stage.CLAIMS: ref(Stage.CLAIMS)}
    shard = ShardRun(0, kept, cast("StageSubmitter", submitter))
    submitted = shard.submit((Stage.CLAIMS, Stage.RATINGS, Stage.VERDICTS))
    assert submitter.submitted == [(Stage.RATINGS, 7), (Stage.VERDICTS, 7)]
    assert submitter.windows is not None
    assert submitter.windows() is not None
    shard.collect({stage: ref(stage) for stage in submitted})
    gc.collect()
    assert submitter.windows() is None
    assert submitter.closed == 1
    assert list(shard.tables) == [Stage.SAMPLES, Stage.CLAIMS, Stage.RATINGS, Stage.VERDICTS]


def test_shard_whose_tables_are_kept_submits_nothing() -> None:
    submitter = Submitter()
    shard = ShardRun(0, {stage: ref(stage) for stage in Stage}, cast("StageSubmitter", submitter))
    assert shard.submit(tuple(Stage)) == {}
    shard.collect({})
    assert (submitter.submitted, submitter.windows, submitter.closed) == ([], None, 0)
