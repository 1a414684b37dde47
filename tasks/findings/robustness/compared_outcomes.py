"""Find out what the outcomes of the metrics of a comparison hang on."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from metric_core.statistics.comparison import ChangeOutcome, MetricComparison, compare_pairs, decide_again
from metric_core.statistics.earlier_runs import adjust_differences
from metric_core.statistics.robustness import DecidedDifference, OutcomeWithout, Part, Robustness, noise_of
from tasks.comparison.mean_change import changed_rows
from tasks.findings.comparison import ComparedRows
from tasks.findings.judge_facts import judge_variances

_DECIDED = (ChangeOutcome.BETTER, ChangeOutcome.WORSE, ChangeOutcome.DIFFERENT, ChangeOutcome.UNCLEAR)


def check_outcomes(rows: ComparedRows, parts: Sequence[Part]) -> Iterator[tuple[MetricComparison, Robustness]]:
    """Yield what the outcome of each metric hangs on.

    Args:
        parts: Rows by topic, document or group.
    """
    runs = [judge_variances(side.run.record) for side in (rows.pair.a, rows.pair.b) if side is not None]
    changed = len(changed_rows(rows.pair)) if any(runs) else 0
    for number, compared in enumerate(rows.metrics):
        if compared.verdict not in _DECIDED or compared.difference is None:
            continue
        pairs, adjusted = rows.pairs_of(compared)
        weights, values = pairs.weights, adjusted.values
        decided = DecidedDifference(
            rows=pairs.rows,
            values=values if weights is None else values * weights / weights.mean(),
            difference=compared.difference,
            outcome=compared.verdict,
            without=_decide_without(rows, number),
        )
        found = decided.find_robustness(parts, noise_of(compared.metric, runs, changed))
        if found is not None:
            yield compared, found


def _decide_without(rows: ComparedRows, number: int) -> OutcomeWithout:
    """Return a function that decides about a metric without some rows.

    The other metrics stay as they are, and so does what missing scores could change.

    Args:
        number: Place of the metric among those that are compared.
    """
    compared = rows.metrics[number]
    missing = None if compared.difference is None else compared.difference.missing
    columns, (pairs, _) = rows.paired[compared.metric].columns, rows.pairs_of(compared)

    def decide(left_out: Collection[str]) -> str:
        kept = pairs.without(left_out)
        difference = compare_pairs(columns, kept, adjust_differences(kept), rows.seed)
        return decide_again(rows.metrics, number, replace(difference, missing=missing))

    return decide
