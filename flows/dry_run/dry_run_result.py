"""Hold the result of a dry run: per stage what is cached and what would be asked, and how certain that is."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from metric_core.stages import Stage
from tasks.metering.accounts import Account
from tasks.models.judges.protocol import JudgeIdentity
from tasks.opening.counting_judge import Tally


class Certainty(StrEnum):
    """The certainty of a count, from the most to the least certain."""

    EXACT = "exact"
    AT_LEAST = "at least"
    ESTIMATED = "estimated"

    @property
    def qualifier(self) -> str:
        """The words before a count in a sentence.

        >>> f"{Certainty.ESTIMATED.qualifier}3 questions", f"{Certainty.EXACT.qualifier}3 questions"
        ('about 3 questions', '3 questions')
        """
        return {self.EXACT: "", self.ESTIMATED: "about "}.get(self, f"{self.value} ")


def least_certain(certainties: Iterable[Certainty]) -> Certainty:
    """Return the least certain of several certainties.

    >>> least_certain([Certainty.EXACT, Certainty.ESTIMATED]).value
    'estimated'
    """
    return max(certainties, key=list(Certainty).index)


@dataclass(slots=True)
class StageDryRun:
    """The counts of one stage.

    Args:
        kept: Number of rows whose results are stored.
        missing: Number of rows that are certain to be computed.
        unknown: Number of rows that only the run itself can decide on, because their inputs do not exist yet or a
            model cannot be reached.
        tally: Questions about the rows that are computed.
    """

    stage: Stage
    judged: bool
    kept: int = 0
    missing: int = 0
    unknown: int = 0
    tally: Tally = field(default_factory=Tally)
    certainty: Certainty = Certainty.EXACT
    kinds: dict[str, Tally] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PendingContexts:
    """The contexts that a run would fetch.

    Args:
        rows: Number of rows whose contexts it would fetch.
        fetched: Time at which the contexts that the dry run uses were fetched; None if there are none.
    """

    index: str
    rows: int
    fetched: datetime | None


@dataclass(frozen=True, slots=True)
class DryRun:
    """The result of a dry run.

    Args:
        rows: Number of rows that the run would evaluate.
        bad_rows: Number of rows that the run would leave out.
        stages: Stages whose results are stored, in the order of the plan.
        problems: Sentences that say what could not be determined, and why.
        contexts: Contexts that the run would fetch; None if the data has them.
        of_findings: Dry runs of its findings, by name; None for one that the run does not compute.
        judges: Name of each judge -> kinds of questions that would go to it.
        tallies: Name of each judge -> questions to it.
        spared: Number of questions that the cheaper judge of a cascade is expected to answer alone.
        judge: Identity of the judge; None if it is not needed, or not known.
        accounts: Questions to each judge with separate prices, and to the others under None, including those of
            findings.
    """

    rows: int
    bad_rows: int
    stages: tuple[StageDryRun, ...]
    problems: tuple[str, ...]
    contexts: PendingContexts | None = None
    of_findings: "Mapping[str, FindingDryRun | None]" = field(default_factory=dict)
    judges: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    tallies: Mapping[str, Tally] = field(default_factory=dict)
    spared: int = 0
    judge: JudgeIdentity | None = None
    accounts: Mapping[Account | None, Tally] = field(default_factory=dict)

    @property
    def tally(self) -> Tally:
        """The questions of all stages and of findings."""
        of_more = sum((part.tally for part in self._more), Tally())
        return sum((stage.tally for stage in self.stages), of_more)

    @property
    def by_judge(self) -> dict[str, Tally]:
        """The questions to each judge, with those of findings."""
        tallies: dict[str, Tally] = {}
        for part in (self, *self._more):
            tallies |= {name: tally + tallies.get(name, Tally()) for name, tally in part.tallies.items()}
        return tallies

    @property
    def certainty(self) -> Certainty:
        """The certainty of the tally: that of the least certain stage."""
        of_more = least_certain((Certainty.EXACT, *(part.certainty for part in self._more)))
        return least_certain((of_more, *(stage.certainty for stage in self.stages)))

    @property
    def _more(self) -> "tuple[DryRun, ...]":
        return tuple(each.dry_run for each in self.of_findings.values() if each is not None)


@dataclass(frozen=True, slots=True)
class FindingDryRun:
    """The dry run of a finding.

    Args:
        line: The result in words.
        problems: Sentences that say what could not be determined, and why.
    """

    dry_run: DryRun
    line: str
    problems: tuple[str, ...] = ()
