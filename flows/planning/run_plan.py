"""Define the plan of a run: a part for each concern, made once from the configuration."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic_core import to_jsonable_python

from flows.config.output_options import TableStoreOptions
from flows.config.result_options import MonitoringOptions, ResultOptions
from flows.config.runner_options import RunnerOptions
from flows.planning.metric_plan import MetricPlan
from metric_core.columns import COLUMNS, RESPONSE, RETRIEVED_CONTEXTS, USER_INPUT
from metric_core.errors import SourceError
from metric_core.question_kinds import KindGroup
from metric_core.stages import Stage
from tasks.options.finding_options import FindingOptions
from tasks.options.grouping_options import GroupingOptions
from tasks.options.judged_settings import JudgedSettings
from tasks.options.narrow import narrow
from tasks.options.retriever_options import RetrieverChoice
from tasks.options.run_model_options import RunModelOptions
from tasks.options.settings import Settings
from tasks.options.slicing_options import SlicingOptions
from tasks.options.source_options import DataOptions, SourceOptions, split_kind
from tasks.sources import all_columns
from tasks.sources.location import HUB

S = TypeVar("S", bound=Settings)
F = TypeVar("F", bound=FindingOptions)


class SourcePlan(RetrieverChoice, SlicingOptions, GroupingOptions, DataOptions):
    """The rows of a run, and how they are read.

    Args:
        rows: Kind of the rows of data that are conversations.
    """

    only_options = False

    rows: Literal["turns", "whole"] = "turns"

    def options(self, **changes: Any) -> SourceOptions:
        """Return the options for reading the source.

        Args:
            changes: Options with other values.
        """
        return narrow(self, SourceOptions, conversations=self.rows, **changes)

    def columns(self) -> tuple[str, ...]:
        """Return the columns that the rows have when they are evaluated: those of the source, and fetched ones.

        Raises:
            SourceError: The source cannot be read, or contexts are to be fetched, and it has no questions.
        """
        columns = all_columns(self.source or "", self.options(limit=None))
        if self.retriever is None:
            return columns
        if USER_INPUT not in columns:
            raise SourceError(f"contexts are fetched for questions, and the source has no {USER_INPUT}; see column_map")
        fetched = {*columns, RETRIEVED_CONTEXTS} | ({RESPONSE} if self.retriever.generator else set())
        return (*(name for name in COLUMNS if name in fetched), *(name for name in columns if name not in COLUMNS))


class StoragePlan(TableStoreOptions):
    """The place where stages are computed, how many rows at a time, and where their tables are stored.

    Args:
        rows_a_window: Rows that stages compute at once and pass on to each other.
        refresh: Stages to compute again, asking the judge, even if their tables are stored.
    """

    only_options = False

    rows_a_shard: int
    rows_a_window: int
    stages_at_once: int
    runner: RunnerOptions = RunnerOptions()
    refresh: tuple[Stage, ...] = ()


@dataclass(frozen=True, slots=True)
class FolderPlan:
    """The run folder.

    Args:
        out: Folder that the options name; None for a new one in runs/.
        stem: Name of the source, which is part of the name of a new folder.
        ending: Suffix of the name of a new folder.
    """

    out: str | None
    stem: str
    ending: str = ""


@dataclass(frozen=True, slots=True)
class RunPlan:
    """The plan of a run.

    Args:
        stages: Settings of every stage that works shard by shard.
        of_findings: Options of each finding that has some.
        secrets: References to the secrets that the run reads.
        record: Configuration, as run.json holds it.
    """

    source: SourcePlan
    metrics: MetricPlan
    stages: Mapping[Stage, Settings]
    models: RunModelOptions
    storage: StoragePlan
    folder: FolderPlan
    outputs: ResultOptions
    monitoring: MonitoringOptions
    of_findings: tuple[FindingOptions, ...]
    secrets: tuple[str, ...]
    record: Mapping[str, Any]

    def options(self, kind: type[F]) -> F:
        """Return the options of a finding."""
        return next(each for each in self.of_findings if isinstance(each, kind))

    def asks_for(self, *names: str) -> bool:
        """Return whether any of these options of findings is set; one of a finding that is not installed is not."""
        return any(getattr(each, name, None) for each in self.of_findings for name in names)

    @property
    def has_prices(self) -> bool:
        """Whether anything of any judge has a price, also of one that a finding asks."""
        servers = [judge.server for each in self.of_findings for judge in each.other_judges.values()]
        own = [server.prices for server in servers if server is not None]
        return self.models.has_prices or any(prices is not None and prices.are_known for prices in own)

    @property
    def judged(self) -> JudgedSettings:
        """The settings with which a stage asks the judge."""
        return self.models.judged

    @property
    def reads(self) -> dict[Stage, tuple[Stage, ...]]:
        """Stage that works shard by shard -> planned stages whose tables it reads, in the order of their levels."""
        return {stage: self.metrics.inputs_of(stage) for stage in self.metrics.sharded_stages}

    def with_launched_judges(self, urls: Mapping[KindGroup | None, str]) -> "RunPlan":
        """Return the plan with the launched judges at their URLs.

        Args:
            urls: URL of each launched judge, as `JudgeOptions.launches` names them.
        """
        models = self.models.with_launched_judges(urls)
        stages = {
            stage: settings.with_launched_judges(urls) if isinstance(settings, JudgedSettings) else settings
            for stage, settings in self.stages.items()
        }
        record = {**self.record, "judge": models.judge.model_dump(mode="json")}
        return replace(self, models=models, stages=stages, record=record)

    def with_metrics(self, metrics: MetricPlan, refresh: Collection[Stage] = ()) -> "RunPlan":
        """Return the plan for other metrics of the same rows and models.

        Args:
            refresh: Stages to compute again.
        """
        storage = self.storage.model_copy(update={"refresh": tuple(refresh)})
        stages = metrics.settings_instead(self.stages, refresh)
        return replace(self, metrics=metrics, storage=storage, stages=stages)

    def with_fetched_contexts(self, source: str) -> "RunPlan":
        """Return the plan for a question set whose contexts have been fetched.

        Args:
            source: File with the fetched rows, whose columns already have the names of sample columns.
        """
        return self.with_options(source=source, retriever=None, column_map={}, id_column=None, limit=None)

    def with_options(self, **changes: Any) -> "RunPlan":
        """Return the plan with other options of its source, folder, outputs or findings; others change only the record.

        Args:
            changes: Options with other values.
        """
        values = {**changes, "source": locate(changes["source"])} if "source" in changes else changes
        record = {**self.record, **to_jsonable_python(values)}
        return replace(
            self,
            source=_with(self.source, changes),
            folder=replace(self.folder, out=changes.get("out", self.folder.out)),
            outputs=_with(self.outputs, changes),
            monitoring=_with(self.monitoring, changes),
            of_findings=tuple(_with(each, changes) for each in self.of_findings),
            record=record,
        )


def _with(part: S, changes: Mapping[str, object]) -> S:
    """Return a part of the plan with those of the changed options that it has."""
    return part.model_copy(update={name: changes[name] for name in changes if name in type(part).model_fields})


def locate(source: str | None) -> str | None:
    """Return a source with its absolute path, if it is on this machine."""
    if source is None or "://" in source or source.startswith(HUB):
        return source
    kind, path = split_kind(source)
    return f"{kind}{Path(path).expanduser().absolute()}"
