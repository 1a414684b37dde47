"""Define the result of a monitored run."""

from dataclasses import dataclass
from pathlib import Path

from flows.monitoring.messages import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainResult:
    """The result of a monitored run.

    Args:
        verdict: Accepted: the run is the baseline. Passed: nothing is wrong, and the baseline stays. Inconclusive or
            failed: the outcome of the gate. Worse: there is an alarm. Recovering: another run like this one ends the
            alarm. Superseded: a newer version is the baseline.
        folder: Run folder; None if nothing was evaluated.
        baseline: Version of the baseline before the run; None without one.
        undelivered: A sentence for each recipient that has not accepted a message, and each sink that lacks results.
    """

    verdict: Verdict
    message: str
    folder: Path | None = None
    baseline: str | None = None
    undelivered: tuple[str, ...] = ()
