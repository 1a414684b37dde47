"""Define what rows that never change say about the judge of two runs."""

from dataclasses import dataclass

from metric_core.statistics.bounded_means import Bounds
from tasks.comparison.mean_change import MeanChange


@dataclass(frozen=True, slots=True)
class JudgeDoubt:
    """A judge that may answer differently under the same name.

    Args:
        reason: Sentence on why.
        change: Change of the rows that it was asked about again since then.
    """

    reason: str
    change: MeanChange


class JudgeEvidence:
    """Evidence on the judge of two runs by rows that never change; of itself, there is none."""

    @property
    def is_comparable(self) -> bool:
        """Whether both runs have scores of such rows."""
        return False

    @property
    def confirmation(self) -> str | None:
        """Sentence on answers that show no change of a judge under the same name; None without any."""
        return None

    def doubt(self, metric: str, sign: float, bounds: Bounds | None) -> JudgeDoubt | None:
        """Return why a judge may answer differently under the same name; None if nothing says so.

        Args:
            sign: Sign of an improvement.
            bounds: Bounds of the changes; None if there are none.
        """
        del metric, sign, bounds
        return None

    def change(self, metric: str) -> MeanChange | None:
        """Return the change of such rows whose texts are the same in both runs; None without any."""
        del metric
        return None
