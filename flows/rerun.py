"""The flow `rerun`: a finished run again, but only where there is something to gain.

Rows that are fine keep their rows of the stage tables, from the run folder itself, so that nothing is asked about
them even where every store has been emptied. A stage whose table lacks what the metrics need is computed for all rows.
"""

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from prefect import flow

from flows.config.run_config import RunConfig, tables_root
from flows.evaluate import Evaluation, finish, running_judge
from flows.execution.artifacts import show_progress
from flows.execution.calibration_lookup import with_maps
from flows.execution.plan import LEVELS
from flows.execution.rerun_plan import Rerun, RerunRequest, prepare
from flows.execution.rerun_warnings import warn_about_reused_rows
from flows.execution.run_record import build_manifest, choose_folder, record_run
from flows.execution.runners import start_runner
from flows.execution.shards import Shards, Submitted, Way
from flows.execution.stage_settings import STAGE_TASKS, samples_settings, stage_settings, storage_of
from metric_core.errors import RunFolderError
from metric_core.stages import Stage
from tasks.models.models import open_cache
from tasks.runs import run_folder
from tasks.runs.row_reuse import RowReuse, row_ids
from tasks.stages.base import run_here
from tasks.stages.samples import BadRowNote, SamplesResult, samples
from tasks.tables.table_store import StageRef
from tasks.tables.tables_in_use import mark_in_use


@flow(name="rerun", persist_result=False, validate_parameters=True)
def rerun(request: RerunRequest) -> Evaluation:
    """Runs a finished run again where there is something to gain, into a run folder of its own.

    Args:
        request: which run, and what of it.

    Returns:
        Where the results are, and how many rows they are about.

    Raises:
        AssayError: anything that the user can put right; the message says how.
    """
    ready = prepare(request)
    if ready.config.cache is not None:
        open_cache(ready.config.cache).ensure()
    folder = _folder_of(ready)
    with run_folder.lock_folder(folder), running_judge(ready.config) as config:
        parent = {"run_id": ready.earlier.run_id, "folder": str(ready.earlier.folder)}
        manifest = {**build_manifest(config, ready.plan), "parent": parent}
        in_use = mark_in_use(tables_root(config), manifest["run_id"])
        with record_run(folder, manifest), in_use, show_progress(), start_runner(config):
            return _rerun(ready, config, folder, manifest)


def run_rerun(request: RerunRequest) -> Evaluation:
    """Runs the flow.

    Args:
        request: which run, and what of it.
    """
    return rerun(request)


def _rerun(ready: Rerun, config: RunConfig, folder: Path, manifest: Mapping[str, Any]) -> Evaluation:
    started = time.monotonic()
    carrier = RowReuse(ready.earlier, tables_root(config))
    read = _read(ready, config, carrier)
    wanted = ready.rows(read)
    work = _Work(ready, config, carrier, wanted)
    refs = work.run(read.refs)
    notes = warn_about_reused_rows(ready, manifest)
    warnings = (*(words for words in read.warnings if words not in ready.earlier.notes), *notes)
    said = {
        "rows": ready.request.rows,
        "stage": ready.request.stage,
        "rows_anew": work.rows_named(read.refs),
        "notes": notes,
    }
    read = replace(read, warnings=warnings)
    seconds = round(time.monotonic() - started, 3)
    return finish(read, refs, ready.plan, folder, {**manifest, "rerun": said, "seconds": seconds})


def _read(ready: Rerun, config: RunConfig, carrier: RowReuse) -> SamplesResult:
    """The rows: as the source has them now if it is about changes, else those of the earlier run."""
    if ready.request.rows == "changed":
        read: SamplesResult = run_here(samples, samples_settings(config, ready.plan), carrier.tables)
        return read
    manifest = ready.earlier.manifest
    return SamplesResult(
        refs=tuple(carrier.samples()),
        rows_read=manifest["rows_read"],
        bad_rows=tuple(BadRowNote(**bad_row) for bad_row in manifest["bad_rows"]),
        bad_row_count=manifest["bad_row_count"],
        warnings=tuple(manifest["warnings"]),
    )


class _Work:
    """What a rerun computes, shard by shard.

    Args:
        ready: the rerun.
        config: its configuration, whose judge is at hand.
        carrier: brings rows of the earlier run.
        wanted: ids of the rows that are computed anew; None for all.
    """

    def __init__(self, ready: Rerun, config: RunConfig, carrier: RowReuse, wanted: frozenset[str] | None) -> None:
        self._ready = ready
        self._plan = ready.plan
        self._config = config
        self._carrier = carrier
        self._wanted = wanted
        self._settings = with_maps(stage_settings(config, ready.plan), config, ready.plan)
        self._stages = [stage for stage in ready.plan.stages if stage in STAGE_TASKS]
        self._keeping = {stage: storage_of(stage, self._settings[stage], config) for stage in self._stages}

    def rows_named(self, samples: Sequence[StageRef]) -> int:
        """How many rows are to be computed anew."""
        return sum(ref.rows for ref in samples) if self._wanted is None else len(self._wanted)

    def run(self, samples: Sequence[StageRef]) -> list[StageRef]:
        """The tables of all shards, those of the samples included."""
        everything, some = sum(ref.rows for ref in samples), self.rows_named(samples)
        rows = {stage: everything if self._is_whole(stage) else some for stage in self._stages}
        shards = Shards(self._config, {stage: rows[stage] for stage in self._stages if self._is_computed(stage)})
        for number, ref in enumerate(samples):
            shards.add(self._way(number, ref))
        return shards.finished()

    def _way(self, number: int, samples: StageRef) -> Way:
        """Level after level: a table that holds rows of both runs is put together before others read it."""
        order = row_ids(samples)
        tables = {Stage.SAMPLES: samples}
        for level in LEVELS:
            scopes = {stage: self._scope(stage, order) for stage in level if stage in self._stages}
            submitted: dict[Stage, Submitted] = {}
            for stage, anew in scopes.items():
                if anew or not order:
                    before = [tables[earlier] for earlier in self._plan.before(stage)]
                    if len(anew) < len(order):
                        before = [self._carrier.select(ref, anew) for ref in before]
                    future = STAGE_TASKS[stage].submit(before, self._settings[stage], self._keeping[stage], number)
                    submitted[stage] = Submitted(future, len(anew))
                else:
                    tables[stage] = self._carrier.reuse(stage, order)
            done = yield submitted
            for stage, ref in done.items():
                is_whole = len(scopes[stage]) == len(order)
                tables[stage] = ref if is_whole else self._carrier.merge(ref, order, scopes[stage])
        return list(tables.values())

    def _scope(self, stage: Stage, order: Sequence[str]) -> Collection[str]:
        """The ids of the shard's rows that a stage computes."""
        if not self._is_computed(stage):
            return ()
        if self._wanted is None or self._is_whole(stage):
            return frozenset(order)
        return self._wanted.intersection(order)

    def _is_computed(self, stage: Stage) -> bool:
        return self._is_whole(stage) or stage in self._ready.anew

    def _is_whole(self, stage: Stage) -> bool:
        """Whether a stage is computed for all rows, whichever the request names."""
        return stage is Stage.AGGREGATION or stage in self._ready.whole


def _folder_of(ready: Rerun) -> Path:
    if ready.config.out is not None and Path(ready.config.out).expanduser().absolute() == ready.earlier.folder:
        raise RunFolderError(f"{ready.earlier.folder} is the run itself; name another folder for its rerun")
    return choose_folder(ready.config, "-rerun")
