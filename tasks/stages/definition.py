"""Declare a stage: the tables it reads, the questions it asks, and the function that computes its table."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Generic, TypeAlias, TypeVar, get_type_hints

import pyarrow as pa

from metric_core.prompts.judge_questions import Kind
from metric_core.question_kinds import QuestionKind
from metric_core.stages import JUDGED, Stage
from tasks.models.protocol import Models
from tasks.options.judged_settings import JudgedSettings
from tasks.options.settings import Settings
from tasks.runtime.usage import StageUsage

Tables: TypeAlias = Mapping[Stage, pa.Table]
"""The tables that a stage reads, by the stage that computed them."""

Progress: TypeAlias = Callable[[int, int], None]
"""Called with the number of newly done units and the increase of their total."""

S = TypeVar("S", bound=Settings)


@dataclass(frozen=True, slots=True)
class StageOutput:
    """The result of a stage.

    Args:
        usage: Cost of the table, without the seconds.
    """

    table: pa.Table
    usage: StageUsage = field(default_factory=StageUsage)


def ignore_progress(done: int, total: int) -> None:
    """Do nothing; the default progress callback."""


@dataclass(frozen=True)
class StageDefinition(Generic[S]):
    """A stage that works shard by shard.

    Args:
        version: Number to increase whenever equal inputs would give a different table.
        reads: Stages whose tables it reads, if the run includes them.
        columns: Columns that it reads of the tables of some of these stages; it may read all of the others.
        asks: Kinds of questions that it may ask the judge; empty for a stage without a judge.
        cached: True if its tables are cached, and a rerun takes the rows that it does not recompute from the earlier
            run.
        always: True if it runs even when no metric needs its products.
        function: Function that computes its table; the table depends on nothing but the arguments.
    """

    stage: Stage
    version: int
    reads: tuple[Stage, ...]
    columns: Mapping[Stage, Sequence[str]]
    asks: tuple[QuestionKind, ...]
    cached: bool
    always: bool
    settings: type[S]
    function: Callable[[Tables, S, Models, Progress], StageOutput]

    def asked_kinds(self, settings: Settings) -> tuple[Kind, ...]:
        """Return the kinds of questions that the stage may ask with some settings."""
        return settings.asked_kinds(self.asks) if isinstance(settings, JudgedSettings) else ()

    def compute(self, tables: Tables, settings: S, models: Models, progress: Progress = ignore_progress) -> StageOutput:
        """Compute the table of one shard.

        Args:
            progress: Called as the work advances.
        """
        return self.function(tables, settings, models, progress)


def stage(  # noqa: PLR0913 a declaration
    name: Stage,
    *,
    version: int,
    reads: tuple[Stage, ...],
    columns: Mapping[Stage, Sequence[str]] = MappingProxyType({}),
    asks: tuple[QuestionKind, ...] = (),
    cached: bool = True,
    always: bool = False,
) -> Callable[[Callable[[Tables, S, Models, Progress], StageOutput]], StageDefinition[S]]:
    """Return a decorator that turns a function into a stage; see `StageDefinition` for the arguments.

    The class of the settings is the annotation of the function's parameter `settings`.

    Raises:
        TypeError: `asks` contradicts `metric_core.stages.JUDGED`.
    """
    if bool(asks) != (name in JUDGED):
        raise TypeError(
            f"the stage {name} asks {', '.join(asks) or 'nothing'}, but metric_core.stages.JUDGED disagrees"
        )

    def declare(function: Callable[[Tables, S, Models, Progress], StageOutput]) -> StageDefinition[S]:
        settings = get_type_hints(function)["settings"]
        return StageDefinition(name, version, reads, columns, asks, cached, always, settings, function)

    return declare
