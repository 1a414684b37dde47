"""Find out what the outcomes of the metrics of a comparison hang on."""

from collections.abc import Collection, Iterator, Sequence

from metric_core.statistics.comparison import ChangeOutcome, MetricComparison, compare_metric, decide_outcomes
from metric_core.statistics.pairs import ScoreColumns, pair_scores
from metric_core.statistics.robustness import DecidedDifference, OutcomeWithout, Part, Robustness, noise_of
from tasks.comparison.mean_change import changed_rows
from tasks.findings.comparison import ComparedRows
from tasks.findings.judge_facts import judge_variances
from tasks.findings.robustness.row_parts import leave_out

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
        decided = DecidedDifference(
            rows=pairs.rows,
            values=pairs.differences,
            difference=compared.difference,
            outcome=compared.verdict,
            without=_decide_without(rows, number, column),
        )
        found = decided.find_robustness(parts, noise_of(compared.metric, runs, changed))
        if found is not None:
            yield compared, found


def _decide_without(rows: ComparedRows, number: int, column: ScoreColumns) -> OutcomeWithout:
    """Return a function that decides about a metric without some rows; the other metrics stay as they are.

    Args:
        number: Place of the metric among those that are compared.
    """
    compared = rows.metrics[number]

    def decide(left_out: Collection[str]) -> str:
        again = compare_metric(leave_out(column, left_out), rows.seed)
        part = next((each for each in again if each.scale == compared.scale), None)
        if part is None or part.difference is None or part.difference.test is None:
            return ChangeOutcome.NOT_COMPARED
        return decide_outcomes([*rows.metrics[:number], part, *rows.metrics[number + 1 :]])[number].verdict

    return decide
