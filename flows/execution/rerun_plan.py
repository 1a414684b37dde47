"""Plan a rerun from the folder of the earlier run, and warn about the rows that it reuses."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from flows.config.run_config import RunConfig
from flows.planning.checks import run_checks
from flows.planning.metric_plan import MetricPlan, plan_requests
from flows.planning.planner import compose_plan, plan_source
from flows.planning.rerun_request import RerunRequest
from flows.planning.run_plan import RunPlan
from metric_core.columns import EARLIER_TURNS
from metric_core.declarations.metric import MetricRequest
from metric_core.errors import ConfigError, RunFolderError, SourceError
from metric_core.stages import Stage
from tasks.engine.registry import STAGES
from tasks.options.evaluation_options import EvaluationOptions
from tasks.options.model_words import parse_judge
from tasks.options.option import implementation_fields
from tasks.options.settings import Settings
from tasks.record.run_record import RunRecord
from tasks.rows.table_store import TableStore
from tasks.runs.finished_run import FinishedRun
from tasks.runs.row_changes import find_row_changes
from tasks.runtime.wording import prefix_place
from tasks.stages.ratings import RatingsSettings
from tasks.stages.samples import SamplesResult
from tasks.stages.verdicts import VerdictsSettings

_NOT_CONTENT = frozenset({"extras"})
"""Columns of a sample that no stage reads."""

_IDENTITY = ("backend", "model", "revision")
_RETURNED = {"judge": "answers", "embedder": "vectors", "language": "entities", "recognizer": "entities"}
"""Model -> what it returns."""


@dataclass(frozen=True, slots=True)
class Rerun:
    """A prepared rerun.

    Args:
        earlier: Run to run again.
        plan: Plan of the new run.
        recomputed: Stages that are recomputed for the rows of the request.
        whole: Stages that are computed for all rows, because the earlier run lacks them, has them for other metrics, or
            computed them in another way.
        failed: Ids of the rows with a failed cell.
    """

    request: RerunRequest
    earlier: FinishedRun
    plan: RunPlan
    recomputed: frozenset[Stage]
    whole: frozenset[Stage]
    failed: frozenset[str]

    def is_whole(self, stage: Stage) -> bool:
        """Return whether a stage is computed for all rows, whatever the request names."""
        return not STAGES[stage].cached or stage in self.whole

    def is_row_computed(self, chosen: Collection[str] | None, stage: Stage, row: str) -> bool:
        """Return whether a stage is computed for a row.

        Args:
            chosen: Ids of the rows that are recomputed; None for all.
        """
        return self.is_whole(stage) or (stage in self.recomputed and (chosen is None or row in chosen))

    def read_samples(self, read_source: Callable[[RunPlan], SamplesResult]) -> SamplesResult:
        """Return the rows: read from the source if the request is about changes, else those of the earlier run."""
        if self.request.chosen_rows == "changed":
            return read_source(self.plan)
        record, store = self.earlier.record, TableStore(self.plan.storage.tables_root)
        return SamplesResult(
            refs=tuple(store.write(shard) for shard in self.earlier.samples()),
            rows_read=record.rows_read,
            bad_rows=record.bad_rows,
            bad_row_count=record.bad_row_count,
            warnings=tuple(note for note in record.warnings if note not in record.server_warnings),
            judgments=record.judgments,
        )

    def rows(self, read: SamplesResult) -> "frozenset[str] | None":
        """Return the ids of the rows that are recomputed; None for all."""
        if self.request.chosen_rows == "all":
            return None
        if self.request.chosen_rows == "failed":
            return self.failed
        changes = find_row_changes(self.earlier.samples(), (samples.read() for samples in read.refs))
        changed = (row_id for row_id, columns in changes.changed.items() if not _NOT_CONTENT.issuperset(columns))
        return frozenset((*changes.added, *changed))


def prepare_rerun(request: RerunRequest) -> Rerun:
    """Read the earlier run and plan the new one.

    Raises:
        RunFolderError: The run cannot be run again, or its own folder is named as the new one.
        ConfigError: The request does not fit the run, or there is nothing to do.
        SourceError: The rows lack a column that a metric needs.
    """
    earlier = FinishedRun(request.run)
    out = request.changes.get("out")
    if out is not None and Path(out).expanduser().absolute() == earlier.folder:
        raise RunFolderError(f"{earlier.folder} is the run itself; name another folder for its rerun")
    old = config_of(earlier)
    config = request.apply(old)
    before = _plan_metrics(old, earlier.requests, earlier)
    requests = earlier.requests if "metrics" not in request.changes else config.requests() or ()
    metrics = _plan_metrics(config, requests, earlier)
    config.refuse_uncounted_budget()
    if request.chosen_rows != "changed":
        _check_columns(earlier, metrics, {request.key for request in before.requests})
    recomputed = _stages_from(request, metrics)
    refresh = tuple(stage for stage in metrics.stages if stage in recomputed and request.chosen_rows == "all")
    config = config.model_copy(update={"refresh": refresh})
    plan = compose_plan(config, plan_source(config), metrics, "-rerun")
    ready = Rerun(
        request=request,
        earlier=earlier,
        plan=plan,
        recomputed=recomputed,
        whole=_missing_stages(earlier, old, before, plan),
        failed=earlier.failed_rows([metric.key for metric in metrics.requests]),
    )
    for each in run_checks(plan, with_data=False):
        each.check()
    is_new = any(metric not in before.metric_settings for metric in metrics.metric_settings)
    if request.chosen_rows == "failed" and not (ready.failed or ready.whole or is_new):
        raise ConfigError(
            f"nothing to do: no cell of the run in {earlier.folder} failed. `--rows changed` evaluates the rows that "
            "the source has changed since, `--rows all` asks about all rows again, and `--stage NAME` without `--rows` "
            "recomputes a stage for all rows."
        )
    return ready


def parse_rerun_request(model: str | None = None, **options: Any) -> RerunRequest:
    """Return the request for options of the command line.

    Args:
        model: Model of the judge that the options name.
        options: Fields of a request as text; None for a field that is not set.

    Raises:
        ConfigError: A value cannot be used.
    """
    values = {name: value for name, value in options.items() if value is not None}
    if model is not None:
        if "judge" not in values:
            raise ConfigError(f"the model {model!r} is named without its judge; give --judge too")
        values["judge"] = parse_judge(values["judge"])
        values["judge"].setdefault("server", {})["model"] = model
    try:
        return RerunRequest.model_validate(values)
    except ValidationError as error:
        problems = "; ".join(prefix_place(each["loc"][:1], each["msg"]) for each in error.errors(include_url=False))
        raise ConfigError(f"the rerun cannot be planned: {problems}") from error


def config_of(earlier: FinishedRun) -> RunConfig:
    """Return the configuration of an earlier run."""
    try:
        return RunConfig.model_validate(earlier.config or None)
    except ValidationError as error:
        written_by = earlier.record.release
        raise RunFolderError(
            f"the configuration of the run in {earlier.folder} was written by rag-assay {written_by} and cannot be "
            "used by this one. Evaluate its source again with `assay run`."
        ) from error


def _plan_metrics(options: EvaluationOptions, requests: Sequence[MetricRequest], earlier: FinishedRun) -> MetricPlan:
    return plan_requests(options, requests, [EARLIER_TURNS] if earlier.has_values(EARLIER_TURNS) else [])


def _check_columns(earlier: FinishedRun, metrics: MetricPlan, scored: Collection[str]) -> None:
    """Refuse a new metric whose columns no row has; one that the run had is undefined again."""
    available = earlier.columns()
    for request in metrics.requests:
        if request.key not in scored and (missing := request.lacking(available)):
            raise SourceError(
                f"the metric {request.key} needs {', '.join(missing)}, which no row of the run in {earlier.folder} "
                f"has; they have {', '.join(available)}"
            )


def _stages_from(request: RerunRequest, metrics: MetricPlan) -> frozenset[Stage]:
    """Return the stage that the request names and all that read from it; without one, all."""
    possible = metrics.sharded_stages
    if request.stage is None:
        return frozenset(possible)
    if request.chosen_rows == "changed":
        raise ConfigError("rows that have changed are computed in all stages; leave --stage out, or --rows changed")
    if request.stage not in possible:
        raise ConfigError(f"this run has no stage {request.stage} to recompute; it has {', '.join(possible)}")
    stages = {request.stage}
    for stage in possible:
        if stages.intersection(STAGES[stage].reads):
            stages.add(stage)
    return frozenset(stages)


def _missing_stages(
    earlier: FinishedRun, options: EvaluationOptions, old: MetricPlan, new: RunPlan
) -> frozenset[Stage]:
    """Return the stages whose tables lack something, and all that read from them, because their inputs may change."""
    before, after = old.stage_settings(options), new.stages
    for stage in (Stage.RATINGS, Stage.VERDICTS):
        before[stage] = _restore_codes(earlier, before[stage])
    versions = earlier.record.stage_versions
    missing: set[Stage] = set()
    for stage in new.metrics.cached_stages:
        is_same = versions.get(stage, STAGES[stage].version) == STAGES[stage].version
        is_complete = stage in old.stages and is_same and _contains(before[stage], after[stage])
        if not is_complete or missing.intersection(new.metrics.inputs_of(stage)):
            missing.add(stage)
    return frozenset(missing)


def _restore_codes(earlier: FinishedRun, settings: Settings) -> Settings:
    """Return settings with the code of the earlier run's metrics, because other code may ask other questions."""
    if not isinstance(settings, RatingsSettings | VerdictsSettings):
        return settings
    codes = earlier.codes
    then = (metric.model_copy(update={"code": codes.get(metric.key, metric.code)}) for metric in settings.metrics)
    return settings.model_copy(update={"metrics": tuple(then)})


def _contains(old: Settings, new: Settings) -> bool:
    """Return whether a table computed with the old settings has all rows of one computed with the new settings."""
    ignored = implementation_fields(type(new))
    old_values = old.model_dump(mode="json", exclude=ignored)
    return all(
        old_values[name] == value or (isinstance(value, list) and all(item in old_values[name] for item in value))
        for name, value in new.model_dump(mode="json", exclude=ignored).items()
    )


def warn_about_reused_rows(ready: Rerun, record: RunRecord) -> tuple[str, ...]:
    """Return the warnings about reused rows, with those of the earlier run about rows that it reused itself.

    Args:
        record: Record of the new run.
    """
    if ready.request.chosen_rows == "all" and ready.request.stage is None:
        return ()
    found = (_two_models(model, ready.earlier.record, record) for model in _models_of(ready.plan.metrics))
    return tuple(dict.fromkeys((*ready.earlier.notes, *(note for note in found if note is not None))))


def _models_of(metrics: MetricPlan) -> Iterator[str]:
    yield "judge"
    if Stage.SIMILARITY in metrics.stages:
        yield "embedder"
    if Stage.ENTITIES in metrics.stages:
        yield from ("language", "recognizer")


def _two_models(model: str, old: RunRecord, new: RunRecord) -> str | None:
    identities = (getattr(old, model), getattr(new, model))
    before, now = ([None if found is None else getattr(found, name) for name in _IDENTITY] for found in identities)
    if before == now:
        return None
    one, other = (" ".join(map(str, filter(None, identity))) or "none" for identity in (before, now))
    return (
        f"reused rows have {_RETURNED[model]} of {one}, recomputed rows of {other}; `--rows all` asks one "
        f"{model} about all rows"
    )
