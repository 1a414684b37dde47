"""Sentences of alerts on a run and its gate."""

from flows.monitoring.gating import GatedRun, describe_metric_change, find_gate_incidents
from metric_core.gates.checks import check_gate
from metric_core.gates.rules import AbsoluteRule, Count, CoverageRule, Gate, Statistic, Threshold
from metric_core.records import Direction, Score
from metric_core.statistics.comparison import compare_metrics
from metric_core.statistics.pairs import ScoreColumns
from tasks.record.outcome import OutcomeCoverage


def test_sentences_name_the_rows_and_the_groups_that_they_rest_on() -> None:
    rows = [f"row {number:02}" for number in range(60)]
    good = {row: Score.scored(0.8 + number % 3 / 20) for number, row in enumerate(rows)}
    poor = {row: Score.scored(0.3 + number % 3 / 20) for number, row in enumerate(rows)}
    for groups, size in ((None, "over 60 rows"), ({row: row[-1] for row in rows}, "over 60 rows of 10 groups")):
        columns = ScoreColumns(
            metric="mine", direction=Direction.HIGHER, a=good, b=poor, groups=groups, bounds=(0.0, 1.0)
        )
        [metric] = compare_metrics([columns])
        assert describe_metric_change(metric).endswith(f", {size}")
        result = check_gate(Gate(absolute=(AbsoluteRule("mine", Statistic.MEAN, Threshold(0.8)),)), [columns])
        [incident] = find_gate_incidents(GatedRun(gate="failed", result=result), (), "run").found
        assert f") {size}: violates the threshold" in incident.sentence


def test_scores_that_are_missing_besides_rows_are_told_for_their_metric() -> None:
    rows = [f"row {number:02}" for number in range(60)]
    before = {row: Score.scored(0.8) for row in rows}
    lost = {"all of them": 31, "half of them": 15}
    columns = [
        ScoreColumns(metric=metric, direction=Direction.HIGHER, a=before, b={row: before[row] for row in rows[:count]})
        for metric, count in lost.items()
    ]
    result = check_gate(Gate(coverage=(CoverageRule(None, Count.PAIRED, Threshold(0.9)),)), columns)
    assert [check.outcome.value for check in result.checks] == ["failed", "failed"]
    gated = GatedRun(gate="failed", result=result, kept=OutcomeCoverage(rows=(31, 60)))
    assert [check.metric for check in gated.reported_checks] == ["half of them"]
    [incident] = find_gate_incidents(gated, (), "run").found
    assert "half of them" in incident.sentence
    complete = GatedRun(gate="failed", result=result, kept=OutcomeCoverage(rows=(60, 60)))
    assert len(find_gate_incidents(complete, (), "run").found) == 2


def test_incident_of_a_rule_that_is_gone_is_over_without_a_word() -> None:
    columns = [ScoreColumns(metric="mine", direction=Direction.HIGHER, a={}, b={"row": Score.scored(0.8)})]
    result = check_gate(Gate(coverage=(CoverageRule(None, Count.SCORED, Threshold(0.5)),)), columns)
    known = "gate:failed:coverage:mine:share scored at least 0.5"
    gone = "gate:failed:coverage:mine:share scored at least 0.9"
    gated = GatedRun(gate="passed", result=result)
    assert find_gate_incidents(gated, [known, gone, "alarm:mine"], "run").replaced == {gone}
    assert find_gate_incidents(GatedRun(), [known], "run").replaced == {known}, "there is no gate any more"
    unlike = gated.with_obstacle("another judge")
    assert find_gate_incidents(unlike, [known, gone], "run").replaced == frozenset(), "not all rules were applied"


def test_rule_that_cannot_be_decided_any_longer_is_over_if_the_run_becomes_the_baseline() -> None:
    few = {f"row {number}": Score.scored(0.8) for number in range(4)}
    columns = [ScoreColumns(metric="mine", direction=Direction.HIGHER, a=few, b=few)]
    result = check_gate(Gate(absolute=(AbsoluteRule("mine", Statistic.MEAN, Threshold(0.5)),)), columns)
    (check,) = result.checks
    assert check.outcome.value == "inconclusive"
    key = f"gate:failed:absolute:mine:{check.rule}"
    gated = GatedRun(gate="passed", result=result, may_be_undecided=True)
    assert [each.key for each in find_gate_incidents(gated, [key], "run").found] == [key]
    assert find_gate_incidents(gated, [key], "run", is_accepted=True).found == ()
