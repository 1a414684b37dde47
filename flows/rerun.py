"""Run a finished run again where its result can change: the flow `rerun`.

The results of all other rows are read from the stage tables in the earlier run's folder, so nothing is asked about them
even if the cache and the table store are empty. A stage whose table lacks what the metrics need is computed for all
rows.
"""

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from prefect import flow

from flows.evaluate import Evaluation, finish, outlive
from flows.execution.rerun_plan import Rerun, prepare
from flows.execution.rerun_warnings import warn_about_reused_rows
from flows.execution.run import Run, open_run
from flows.execution.run_stages import read_samples
from flows.execution.run_subject import name_rerun
from flows.execution.shards import Shard, ShardQueue, Submitted
from flows.execution.spending import measure_throughput
from flows.execution.stage_submitter import StageSubmitter, open_submitter
from flows.planning.rerun_request import RerunRequest
from metric_core.stages import Stage
from tasks.prefect_support.budget_stop import stop_at_budget
from tasks.prefect_support.patience import crash_without_server
from tasks.runs.row_reuse import RowReuse, row_ids
from tasks.stages.registry import LEVELS, STAGES
from tasks.tables.table_store import StageRef
from tasks.windows.schedule import ShardWindows


@flow(name="rerun", flow_run_name=name_rerun, persist_result=False, validate_parameters=True)
@crash_without_server
@stop_at_budget
def rerun(request: RerunRequest) -> Evaluation:
    """Run a finished run again where its result can change, into a new run folder.

    Args:
        request: The run, and the rows and stages to recompute.

    Returns:
        The run folder and the numbers of rows.

    Raises:
        FailedCellsError: The run is finished, but too many of its cells failed.
        BudgetSpentError: The run stopped because its budget is spent.
        AssayError: Anything else that the user can fix; the message says how.
    """
    ready = prepare(request)
    origin = {"parent": {"run_id": ready.earlier.run_id, "folder": str(ready.earlier.folder)}}
    with open_run(ready.plan, origin) as run:
        evaluation = _rerun(ready, run)
    return evaluation.refuse_failures()  # after the block, which marks a run as failed if it raises


def run_rerun(request: RerunRequest) -> Evaluation:
    """Run the flow `rerun`.

    Args:
        request: The run, and the rows and stages to recompute.
    """
    return outlive(lambda: rerun(request))


def _rerun(ready: Rerun, run: Run) -> Evaluation:
    started = time.monotonic()
    reuse = RowReuse(ready.earlier, run.tables)
    read = ready.read_samples(reuse, read_samples)
    work = _Work(ready, run, reuse, ready.rows(read))
    refs = work.run(read.refs)
    notes = warn_about_reused_rows(ready, run.manifest)
    warnings = (*(warning for warning in read.warnings if warning not in ready.earlier.notes), *notes)
    entry = {
        "rows": ready.request.chosen_rows,
        "stage": ready.request.stage,
        "rows_anew": work.count_rows(read.refs),
        "notes": notes,
    }
    read = replace(read, warnings=warnings)
    seconds = round(time.monotonic() - started, 3)
    findings = {"rerun": entry, "seconds": seconds, "throughput": measure_throughput(work.count_rows(read.refs))}
    return finish(run, read, refs, findings)


class _Work:
    """The work of a rerun: which rows each stage computes, with which settings.

    Args:
        ready: Prepared rerun.
        run: The rerun.
        reuse: Rows of the earlier run.
        chosen: Ids of the rows to recompute; None for all.
    """

    def __init__(self, ready: Rerun, run: Run, reuse: RowReuse, chosen: frozenset[str] | None) -> None:
        self.plan = ready.plan.metrics
        self.earlier = reuse
        self._run = run
        self._ready = ready
        self._chosen = chosen

    def count_rows(self, samples: Sequence[StageRef]) -> int:
        """Return the number of rows to recompute."""
        return sum(ref.rows for ref in samples) if self._chosen is None else len(self._chosen)

    def run(self, samples: Sequence[StageRef]) -> list[StageRef]:
        """Compute the tables of all shards and return them, including the samples."""
        everything, some = sum(ref.rows for ref in samples), self.count_rows(samples)
        stages = self.plan.sharded_stages
        rows = {
            stage: everything if self._ready.is_whole(stage) else some
            for stage in stages
            if self._ready.is_computed(stage)
        }
        levels = [[stage for stage in level if stage in stages] for level in LEVELS]
        with open_submitter(self._run) as submitter:
            planned = self._run.plan
            queue = ShardQueue(planned.storage, planned.models, [level for level in levels if level], rows)
            return queue.run(_RerunShard(number, ref, self, submitter) for number, ref in enumerate(samples))

    def scope(self, stage: Stage, order: Sequence[str]) -> Collection[str]:
        """Return the ids of a shard's rows that a stage computes.

        Args:
            stage: The stage.
            order: Ids of the shard's rows.
        """
        if not self._ready.is_computed(stage):
            return ()
        if self._chosen is None or self._ready.is_whole(stage):
            return frozenset(order)
        return self._chosen.intersection(order)


class _RerunShard(Shard):
    """A shard of which some stages are computed, for some of its rows.

    If all stages, or all that are cached, are computed for the same rows, they are submitted at once and pass these
    rows on to each other. Stages are else computed level by level, to merge rows of both runs into a table before other
    stages read it.
    """

    def __init__(self, number: int, samples: StageRef, work: _Work, submitter: StageSubmitter) -> None:
        super().__init__(number, {Stage.SAMPLES: samples})
        self._work = work
        self._submitter = submitter
        self._order = row_ids(samples)
        self._scopes = {stage: work.scope(stage, self._order) for stage in work.plan.sharded_stages}
        everything = work.plan.sharded_stages
        candidates = (everything, [stage for stage in everything if STAGES[stage].cached])
        self._at_once = next((stages for stages in candidates if self._have_one_scope(stages)), ())
        self._windows: list[ShardWindows | int] = []

    def submit(self, level: Sequence[Stage]) -> Mapping[Stage, Submitted]:
        stages = [*self._at_once, *(stage for stage in level if stage not in self._at_once)]
        by_scope: dict[frozenset[str], list[Stage]] = {}
        for stage in stages:
            if stage in self.tables:
                continue
            if self._scopes[stage] or not self._order:
                by_scope.setdefault(frozenset(self._scopes[stage]), []).append(stage)
            else:
                self.tables[stage] = self._work.earlier.reuse(stage, self._order)
        submitted: dict[Stage, Submitted] = {}
        for scope, group in by_scope.items():
            submitted |= self._submit_group(group, scope)
        return submitted

    def collect(self, done: Mapping[Stage, StageRef]) -> None:
        for stage, ref in done.items():
            self._collect_stage(stage, ref)
        for windows in self._windows:
            self._submitter.close_windows(windows)
        self._windows = []

    def _have_one_scope(self, stages: Sequence[Stage]) -> bool:
        return len({frozenset(self._scopes[stage]) for stage in stages if self._scopes[stage]}) == 1

    def _submit_group(self, stages: Sequence[Stage], scope: Collection[str]) -> Mapping[Stage, Submitted]:
        """Submit stages for some rows, except those whose tables of these rows are kept."""
        inputs = {earlier for stage in stages for earlier in self._work.plan.inputs_of(stage)}
        tables: dict[Stage, Any] = {stage: self._select(stage, scope) for stage in inputs if stage in self.tables}
        for stage in stages:
            if (ref := self._submitter.find(stage, tables)) is not None:
                tables[stage] = ref
                self._collect_stage(stage, ref)
        missing = [stage for stage in stages if stage not in tables]
        if not missing:
            return {}
        windows = self._submitter.open_windows(tables, missing)
        self._windows.append(windows)
        submitted: dict[Stage, Submitted] = {}
        for stage in missing:
            submitted[stage] = self._submitter.submit(stage, tables, self.number, len(scope), windows)
            tables[stage] = submitted[stage].future
        return submitted

    def _select(self, stage: Stage, scope: Collection[str]) -> StageRef:
        ref = self.tables[stage]
        return ref if len(scope) == len(self._order) else self._work.earlier.select(ref, scope)

    def _collect_stage(self, stage: Stage, ref: StageRef) -> None:
        scope = self._scopes[stage]
        is_whole = len(scope) == len(self._order)
        self.tables[stage] = ref if is_whole else self._work.earlier.merge(ref, self._order, scope)
