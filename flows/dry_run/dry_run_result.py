"""What a plan tells of a run: stage by stage what is kept and what would be asked, and how far that can be trusted."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from metric_core.stages import Stage
from tasks.dry_run.counting_judge import Tally


class Certainty(StrEnum):
    """How far numbers can be trusted."""

    EXACT = "exact"
    ESTIMATED = "estimated"
    AT_LEAST = "at least"


def least_certain(found: Iterable[Certainty]) -> Certainty:
    """The least certain of some.

    >>> least_certain([Certainty.EXACT, Certainty.ESTIMATED]).value
    'estimated'
    """
    return max(found, key=list(Certainty).index)


@dataclass(slots=True)
class StageDryRun:
    """What a run would do in one stage.

    Args:
        stage: the stage.
        judged: whether it asks the judge.
        kept: shards whose tables are kept.
        missing: shards that have to be computed for certain.
        unknown: shards of which only the run can tell, because what they are made from is not there yet, or because a
            model is out of reach.
        tally: what it would ask for the shards that are not kept.
        certainty: of the tally.
    """

    stage: Stage
    judged: bool
    kept: int = 0
    missing: int = 0
    unknown: int = 0
    tally: Tally = field(default_factory=Tally)
    certainty: Certainty = Certainty.EXACT


@dataclass(frozen=True, slots=True)
class PendingContexts:
    """The contexts of a run that fetches them.

    Args:
        index: what the retriever asks.
        rows: rows whose contexts it gives.
        fetched: when the contexts were fetched that the forecast is made with; None where there are none.
    """

    index: str
    rows: int
    fetched: datetime | None


@dataclass(frozen=True, slots=True)
class DryRun:
    """What a run would do.

    Args:
        rows: rows that it would evaluate.
        bad_rows: rows that it would leave out.
        shards: parts that the rows come in.
        stages: the stages whose tables are kept, in the order of the plan.
        problems: why something could not be told.
        contexts: where the contexts come from; None if the data has them.
    """

    rows: int
    bad_rows: int
    shards: int
    stages: tuple[StageDryRun, ...]
    problems: tuple[str, ...]
    contexts: PendingContexts | None = None

    @property
    def tally(self) -> Tally:
        """What all stages would ask."""
        return sum((stage.tally for stage in self.stages), Tally())

    @property
    def certainty(self) -> Certainty:
        """Of the tally: that of its least certain part."""
        return least_certain((Certainty.EXACT, *(stage.certainty for stage in self.stages)))
