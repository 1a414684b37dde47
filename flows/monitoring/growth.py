"""Find runs that are many times as large, as long or as expensive as those before them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from tasks.history.recorded_run import COMPLETED, RecordedRun
from tasks.record.outcome import OutcomeIncident

ROWS, TOKENS, SECONDS = "source: growth", "cost: tokens", "cost: duration"
"""Keys of the incidents."""

_RUNS = 30
"""Number of earlier runs, besides accepted ones, with the largest of which a run is compared."""


@dataclass(frozen=True, slots=True)
class _Measure:
    """A figure that is measured of a run.

    Args:
        least: Value up to which growth does not matter.
        words: Sentence with the value, the factor and the most of earlier runs in it.
    """

    key: str
    kind: Literal["source", "cost"]
    of: Callable[[RecordedRun], float]
    least: float
    words: str


_MEASURES = (
    _Measure(
        ROWS,
        "source",
        lambda run: run.rows,
        100,
        "{source} has {value} rows, {factor} times as many as any of the last runs ({most})",
    ),
    _Measure(
        TOKENS,
        "cost",
        lambda run: run.cost.prompt_tokens + run.cost.output_tokens,
        100_000,
        "the models got and wrote {value} tokens, {factor} times as many as in any of the last runs ({most})",
    ),
    _Measure(
        SECONDS,
        "cost",
        lambda run: run.cost.seconds or 0.0,
        600,
        "the run took {value} seconds, {factor} times as long as any of the last runs ({most})",
    ),
)
_ADVICE = ". The option `budget` stops runs that cost too much. If this is intended, accept the run: assay accept {}"


def find_growth_incidents(run: RecordedRun, runs: Sequence[RecordedRun], factor: float) -> list[OutcomeIncident]:
    """Return in what a run exceeds the runs before it many times.

    It is compared with the most of the last runs and of the accepted ones. Runs that had the incident do not count, or
    it would be over after a night.

    Args:
        runs: Runs before it, oldest first.
        factor: Factor from which on it is reported; 0 for never.
    """
    if not factor:
        return []
    found = []
    for measure in _MEASURES:
        usual = [each for each in runs if _counts(each, measure.key)]
        accepted = [each for each in usual if each.outcome is not None and each.outcome.accepted]
        most = max((measure.of(each) for each in (*usual[-_RUNS:], *accepted)), default=0.0)
        value = measure.of(run)
        if most and value > max(factor * most, measure.least):
            sentence = measure.words.format(
                source=run.source or "the data",
                value=f"{value:,.0f}",
                factor=f"{value / most:,.{0 if value >= 10 * most else 1}f}",
                most=f"{most:,.0f}",
            )
            advice = _ADVICE.format(run.folder)
            found.append(
                OutcomeIncident(
                    key=measure.key,
                    kind=measure.kind,
                    sentence=f"{sentence}{advice}",
                    since=run.created,
                    run_id=run.run_id,
                )
            )
    return found


def _counts(run: RecordedRun, key: str) -> bool:
    """Return whether a run says how large runs usually are."""
    outcome = run.outcome
    if outcome is None or run.status != COMPLETED:
        return False
    incidents = (*outcome.incidents.opened, *outcome.incidents.continuing)
    return outcome.accepted or all(each.key != key for each in incidents)
