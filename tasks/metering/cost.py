"""The cost of questions as the record of a run holds it."""

from typing import ClassVar

from tasks.record.findings import FindingPart
from tasks.record.part import Part


class CostOfJudge(Part):
    """The cost of the questions of a judge.

    Args:
        judge: Name of the judge; empty for all without prices of their own.
    """

    judge: str
    total: float


class CostRecord(FindingPart):
    """The cost of the questions of a run.

    Args:
        judges: Costs by judge, if some have prices of their own.
    """

    entry: ClassVar[str] = "cost"

    currency: str
    total: float
    prompt: float
    cached_prompt: float
    output: float
    gpu: float
    judges: tuple[CostOfJudge, ...] = ()
