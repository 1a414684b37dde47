"""Find out what the outcomes of the metrics of a comparison hang on."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from metric_core.statistics.comparison import ChangeOutcome, MetricComparison, compare_pairs, find_outcome
from metric_core.statistics.earlier_runs import adjust_differences
from metric_core.statistics.paired_tests import holm
from metric_core.statistics.pairs import Pairs, ScoreColumns, pair_scores
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
    by_metric = {column.metric: column for column in rows.columns}
    for number, compared in enumerate(rows.metrics):
        if compared.verdict not in _DECIDED or compared.difference is None:
            continue
        column = by_metric[compared.metric]
        pairs = next(each for each in pair_scores(column).pairs if each.scale == compared.scale)
        values = adjust_differences(pairs).values
        decided = DecidedDifference(
            rows=pairs.rows,
            values=values if pairs.weights is None else values * pairs.weights / pairs.weights.mean(),
            difference=compared.difference,
            outcome=compared.verdict,
            without=_decide_without(rows, number, column, pairs),
        )
        found = decided.find_robustness(parts, noise_of(compared.metric, runs, changed))
        if found is not None:
            yield compared, found


def _decide_without(rows: ComparedRows, number: int, column: ScoreColumns, pairs: Pairs) -> OutcomeWithout:
    """Return a function that decides about a metric without some rows.

    The other metrics stay as they are, and so does what missing scores could change.

    Args:
        number: Place of the metric among those that are compared.
        pairs: Its paired rows.
    """
    compared = rows.metrics[number]
    missing = None if compared.difference is None else compared.difference.missing
    tests = [each.difference.test if each.difference else None for each in rows.metrics]
    others = [test.p for place, test in enumerate(tests) if test is not None and place != number]

    def decide(left_out: Collection[str]) -> str:
        difference = compare_pairs(column, pairs.without(left_out), rows.seed)
        if difference.test is None:
            return ChangeOutcome.NOT_COMPARED
        p_adjusted = holm([difference.test.p, *others])[0]
        return find_outcome(replace(difference, missing=missing), compared.direction, p_adjusted)

    return decide
