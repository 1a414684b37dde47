"""The flow `rerun`: a finished run again, but only where there is something to gain.

Rows that are fine keep their rows of the stage tables, from the run folder itself, so that nothing is asked about
them even where every store has been emptied. A stage whose table lacks what the metrics need is computed for all rows.
"""

import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prefect import flow
from prefect.futures import PrefectFuture

from flows.config import RunConfig, tables_root
from flows.evaluate import Evaluation, finish, judge_at_hand
from flows.plan import LEVELS
from flows.rerun_plan import Rerun, RerunRequest, prepare
from flows.running.artifacts import progress_shown
from flows.running.calibrated import with_maps
from flows.running.recording import folder_of, manifest_of, recorded
from flows.running.runners import running_stages
from flows.running.shards import ref_of
from flows.running.stages import STAGE_TASKS, keeping_of, samples_settings, stage_settings
from metric_core.errors import RunFolderError
from metric_core.products import Stage
from tasks.resources import open_store
from tasks.runs import run_folder
from tasks.runs.carrying import Carrier, row_ids
from tasks.samples import BadRowNote, SamplesResult, samples
from tasks.stage import run_here
from tasks.tables.store import StageRef

_WHO = ("backend", "model", "revision")


@dataclass(frozen=True, slots=True)
class _Shard:
    """A shard on its way through the stages."""

    number: int
    order: Sequence[str]
    tables: dict[Stage, StageRef]


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
    if ready.config.answers is not None:
        open_store(ready.config.answers).ensure()
    folder = _folder_of(ready)
    with run_folder.owned(folder), judge_at_hand(ready.config) as config:
        parent = {"run_id": ready.earlier.run_id, "folder": str(ready.earlier.folder)}
        manifest = {**manifest_of(config, ready.plan), "parent": parent}
        with recorded(folder, manifest), progress_shown(), running_stages(config):
            return _rerun(ready, config, folder, manifest)


def run_rerun(request: RerunRequest) -> Evaluation:
    """Runs the flow.

    Args:
        request: which run, and what of it.
    """
    return rerun(request)


def _rerun(ready: Rerun, config: RunConfig, folder: Path, manifest: Mapping[str, Any]) -> Evaluation:
    started = time.monotonic()
    carrier = Carrier(ready.earlier, tables_root(config))
    read = _read(ready, config, carrier)
    wanted = ready.rows(read)
    shards = [_Shard(number, row_ids(ref), {Stage.SAMPLES: ref}) for number, ref in enumerate(read.refs)]
    _run_levels(ready, config, shards, carrier, wanted)
    said = {
        "rows": ready.request.rows,
        "stage": ready.request.stage,
        "rows_anew": sum(len(_chosen(shard.order, wanted)) for shard in shards),
    }
    if wanted is not None or ready.request.stage is not None:
        read = read.model_copy(update={"warnings": (*read.warnings, *_two_judges(ready.earlier.manifest, manifest))})
    refs = [ref for shard in shards for ref in shard.tables.values()]
    seconds = round(time.monotonic() - started, 3)
    return finish(read, refs, ready.plan, folder, {**manifest, "rerun": said, "seconds": seconds})


def _read(ready: Rerun, config: RunConfig, carrier: Carrier) -> SamplesResult:
    """The rows: as the source has them now if it is about changes, else those of the earlier run."""
    if ready.request.rows == "changed":
        read: SamplesResult = run_here(samples, samples_settings(config, ready.plan), carrier.tables)
        return read
    manifest = ready.earlier.manifest
    return SamplesResult(
        refs=tuple(carrier.samples()),
        rows_read=manifest["rows_read"],
        bad_rows=tuple(BadRowNote.model_validate(bad_row) for bad_row in manifest["bad_rows"]),
        bad_row_count=manifest["bad_row_count"],
        warnings=tuple(manifest["warnings"]),
    )


def _run_levels(
    ready: Rerun, config: RunConfig, shards: Sequence[_Shard], carrier: Carrier, wanted: frozenset[str] | None
) -> None:
    """Fills in the shards' tables, level after level: what is put together is read by the next."""
    settings = with_maps(stage_settings(config, ready.plan), config, ready.plan)
    for level in LEVELS:
        stages = [stage for stage in level if stage in STAGE_TASKS and stage in ready.plan.stages]
        running: list[tuple[_Shard, Collection[str], PrefectFuture[StageRef]]] = []
        for stage in stages:
            keeping = keeping_of(stage, settings[stage], config)
            for shard in shards:
                anew = _scope(ready, stage, shard, wanted)
                if not anew and shard.order:
                    shard.tables[stage] = carrier.kept(stage, shard.order)
                    continue
                before = [shard.tables[earlier] for earlier in ready.plan.before(stage)]
                if len(anew) < len(shard.order):
                    before = [carrier.part(ref, anew) for ref in before]
                running.append((shard, anew, STAGE_TASKS[stage].submit(before, settings[stage], keeping, shard.number)))
        for shard, anew, future in running:
            ref = ref_of(future)
            is_whole = len(anew) == len(shard.order)
            shard.tables[ref.stage] = ref if is_whole else carrier.merged(ref, shard.order, anew)


def _scope(ready: Rerun, stage: Stage, shard: _Shard, wanted: frozenset[str] | None) -> Collection[str]:
    """The ids of the shard's rows that a stage computes."""
    if stage is Stage.AGGREGATION or stage in ready.whole:
        return frozenset(shard.order)
    return _chosen(shard.order, wanted) if stage in ready.anew else frozenset()


def _chosen(order: Sequence[str], wanted: frozenset[str] | None) -> frozenset[str]:
    return frozenset(order) if wanted is None else wanted.intersection(order)


def _folder_of(ready: Rerun) -> Path:
    if ready.config.out is not None and Path(ready.config.out).expanduser().absolute() == ready.earlier.folder:
        raise RunFolderError(f"{ready.earlier.folder} is the run itself; name another folder for its rerun")
    return folder_of(ready.config, "-rerun")


def _two_judges(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    before, now = ([manifest["judge"][name] for name in _WHO] for manifest in (old, new))
    if before != now:
        yield (
            f"the rows that were kept have answers of {' '.join(map(str, filter(None, before)))}, those computed anew "
            f"of {' '.join(map(str, filter(None, now)))}; `--rows all` asks one judge about all rows"
        )
