"""Sentences of alerts on a run and its gate."""

from flows.monitoring.gating import Judged, describe_change, find_gate_incidents
from metric_core.gates.checks import check_gate
from metric_core.gates.rules import AbsoluteRule, Gate, Statistic, Threshold
from metric_core.records import Direction, Score
from metric_core.statistics.comparison import compare
from metric_core.statistics.pairs import ScoreColumns


def test_sentences_name_the_rows_and_the_groups_that_they_rest_on() -> None:
    rows = [f"row {number:02}" for number in range(60)]
    good = {row: Score.scored(0.8 + number % 3 / 20) for number, row in enumerate(rows)}
    poor = {row: Score.scored(0.3 + number % 3 / 20) for number, row in enumerate(rows)}
    for groups, size in ((None, "over 60 rows"), ({row: row[-1] for row in rows}, "over 60 rows of 10 groups")):
        columns = ScoreColumns(
            metric="mine", direction=Direction.HIGHER, a=good, b=poor, groups=groups, bounds=(0.0, 1.0)
        )
        [metric] = compare([columns])
        assert describe_change(metric).endswith(f", {size}")
        result = check_gate(Gate(absolute=(AbsoluteRule("mine", Statistic.MEAN, Threshold(0.8)),)), [columns])
        [incident] = find_gate_incidents(Judged(gate="failed", result=result), (), "run").found
        assert f") {size}: violates the threshold" in incident.sentence
