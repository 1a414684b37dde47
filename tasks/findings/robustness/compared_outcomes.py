"""Find out what the outcomes of the metrics of a comparison hang on."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from metric_core.statistics.comparison import ChangeOutcome, MetricComparison, compare_pairs, decide_again
from metric_core.statistics.earlier_runs import adjust_differences
from metric_core.statistics.pairs import Pairs
from metric_core.statistics.robustness import (
    DecidedDifference,
    OutcomeWithout,
    Part,
    Robustness,
    SecondOpinion,
    noise_of,
)
from metric_core.statistics.second_judge import judge_pairs, order_by_change
from tasks.comparison.mean_change import changed_rows
from tasks.findings.comparison import ComparedRows
from tasks.findings.judge_facts import judge_variances
from tasks.findings.robustness.second_verdicts import SecondVerdicts

_DECIDED = (ChangeOutcome.BETTER, ChangeOutcome.WORSE, ChangeOutcome.DIFFERENT, ChangeOutcome.UNCLEAR)


def check_outcomes(
    rows: ComparedRows, parts: Sequence[Part], second: SecondVerdicts | None
) -> Iterator[tuple[MetricComparison, Robustness]]:
    """Yield what the outcome of each metric hangs on.

    Args:
        parts: Rows by topic, document or group.
        second: Scores of a second judge; None without any.
    """
    runs = [judge_variances(side.run.record) for side in (rows.pair.a, rows.pair.b) if side is not None]
    changed = len(changed_rows(rows.pair)) if any(runs) else 0
    for number, decided in decided_differences(rows):
        compared = rows.metrics[number]
        found = decided.find_robustness(parts, noise_of(compared.metric, runs, changed))
        if found is not None:
            yield compared, found if second is None else replace(found, second=_ask_second(rows, number, second))


def decided_differences(rows: ComparedRows) -> Iterator[tuple[int, DecidedDifference]]:
    """Yield each difference with an outcome, and the place of its metric among those that are compared."""
    for number, compared in enumerate(rows.metrics):
        if compared.verdict not in _DECIDED or compared.difference is None:
            continue
        pairs, adjusted = rows.pairs_of(compared)
        weights, values = pairs.weights, adjusted.values
        yield (
            number,
            DecidedDifference(
                rows=pairs.rows,
                values=values if weights is None else values * weights / weights.mean(),
                difference=compared.difference,
                outcome=compared.verdict,
                without=_decide_without(rows, number),
            ),
        )


def _ask_second(rows: ComparedRows, number: int, second: SecondVerdicts) -> SecondOpinion | None:
    """Return the outcome with the scores of a second judge; None without any for rows whose score changed."""
    compared = rows.metrics[number]
    pairs, _ = rows.pairs_of(compared)
    changed = frozenset(order_by_change(pairs))
    judged = judge_pairs(pairs, second.scores.get(compared.metric, {}))
    return second.give_opinion(
        [compared.metric], lambda: _decide(rows, number, judged) is not compared.verdict, changed
    )


def _decide_without(rows: ComparedRows, number: int) -> OutcomeWithout:
    """Return a function that decides about a metric without some rows.

    Args:
        number: Place of the metric among those that are compared.
    """
    pairs, _ = rows.pairs_of(rows.metrics[number])
    return lambda left_out: _decide(rows, number, pairs.without(left_out))


def _decide(rows: ComparedRows, number: int, pairs: Pairs) -> ChangeOutcome:
    """Return the outcome of a metric by other pairs.

    The other metrics stay as they are, and so does what missing scores could change.
    """
    compared = rows.metrics[number]
    missing = None if compared.difference is None else compared.difference.missing
    columns = rows.paired[compared.metric].columns
    difference = compare_pairs(columns, pairs, adjust_differences(pairs), rows.seed)
    return decide_again(rows.metrics, number, replace(difference, missing=missing))
