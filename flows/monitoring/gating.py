"""Compare a monitored run with its baseline, and apply the gate as far as the two runs can be compared."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path

from flows.config.gate_file import KEPT_AT_LEAST, GateSettings
from flows.monitoring.incidents import UNDECIDED
from flows.monitoring.source_checks import ROWS, Loss, find_losses
from flows.results.gated_comparison import CompareOptions, apply_gate, compare_runs, with_rules_of_metrics
from metric_core.errors import AssayError, NotComparableError
from metric_core.gates.rules import Check, GateResult, Outcome
from metric_core.statistics.comparison import ChangeOutcome, MetricComparison
from tasks.comparison.baseline_coverage import measure_coverage
from tasks.comparison.run_comparison import RunComparison
from tasks.comparison.run_pair import Matching, RunPair
from tasks.documents.comparison.comparison_words import describe_size, format_interval, numbers, title
from tasks.findings.table import compared_findings
from tasks.history.recorded_run import RecordedRun
from tasks.record.outcome import GateOutcome, OutcomeCheck, OutcomeCoverage, OutcomeIncident
from tasks.runs.finished_run import FinishedRun

NOT_COMPARABLE = "comparison"
"""Key of the incident that a run cannot be compared with its baseline."""

_GATE = "gate:"
"""Beginning of the keys of incidents of the gate."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatedRun:
    """A run that was compared with its baseline and checked against the gate.

    Args:
        comparison: Comparison of the runs, or the run alone checked against the gate; None if neither was possible.
        gate: Outcome of the gate; None without one.
        result: Checks of the gate; None if none was applied.
        obstacle: Reason why the run cannot be compared with its baseline; None if it can.
        may_be_undecided: True if the gate passes although rules cannot be decided.
        kept: The part of its baseline's rows and values that the run has; None if it was not compared with one.
        least_kept: Share of the baseline's rows, and of the values in them, that the run has to have.
    """

    comparison: RunComparison | None = None
    gate: GateOutcome | None = None
    result: GateResult | None = None
    obstacle: str | None = None
    may_be_undecided: bool = False
    kept: OutcomeCoverage | None = None
    least_kept: float = KEPT_AT_LEAST

    @property
    def is_compared(self) -> bool:
        """Whether the run was compared with a baseline."""
        return self.comparison is not None and self.comparison.a is not None

    @property
    def checks(self) -> tuple[OutcomeCheck, ...]:
        """The checks of the gate, as an outcome holds them."""
        return () if self.result is None else tuple(map(_outcome_check, self.result.checks))

    @property
    def passed_keys(self) -> frozenset[str]:
        """The keys of the incidents that would be open if the checks that passed had not."""
        checks = self.result.checks if self.result is not None else ()
        return frozenset(key for check in checks if check.outcome is Outcome.PASSED for key in _incident_keys(check))

    @property
    def losses(self) -> tuple[Loss, ...]:
        """The rows and values of the baseline that the run lacks, if they are too many."""
        return tuple(find_losses(self.kept, self.least_kept))

    @property
    def reported_checks(self) -> tuple[Check, ...]:
        """The checks to report: missing rows are reported once, not for each metric."""
        checks = () if self.result is None else self.result.checks
        share = next((loss.share for loss in self.losses if loss.key == ROWS), None)
        if share is None:
            return checks
        explained = self.least_kept * share  # as many scores, if no more are missing among the rows that are there
        return tuple(check for check in checks if not (check.counts_pairs and (check.observed or 0.0) >= explained))

    def same_baseline(self, runs: Sequence[RecordedRun]) -> list[RecordedRun]:
        """Return the runs that were compared with the same baseline as this one."""
        own = None if self.comparison is None or self.comparison.a is None else self.comparison.a.run_id
        named = ((run, None if run.outcome is None else run.outcome.baseline) for run in runs)
        return [run for run, baseline in named if baseline is not None and baseline.run_id == own]

    def with_obstacle(self, obstacle: str) -> "GatedRun":
        """Return the run as one that cannot be compared with its baseline, for a reason."""
        return replace(self, obstacle=obstacle, gate=None if self.gate is None else _at_best_inconclusive(self.gate))

    def worse_metrics(self) -> Iterator[str]:
        """Yield a sentence for each metric that is significantly worse than in the baseline."""
        for metric in self.comparison.metrics if self.comparison is not None else ():
            if metric.verdict is ChangeOutcome.WORSE:
                yield describe_metric_change(metric)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences of findings on what was lost since the baseline; none if the runs are not like for like."""
        if (found := self.comparison) is None or self.obstacle is not None:
            return ()
        return tuple(sentence for finding in compared_findings(found) for sentence in finding.notes(found))

    @property
    def opening(self) -> tuple[str, ...]:
        """Sentences of findings that explain all others."""
        if (found := self.comparison) is None:
            return ()
        return tuple(sentence for finding in compared_findings(found) for sentence in finding.opening(found))

    @property
    def judgments(self) -> str | None:
        """Sentence on what became of the judgments of texts in the run; None if it has none."""
        found = None if self.comparison is None else self.comparison.b.judgments
        return None if found is None else f"judgments: {found}"

    def refusals(self) -> Iterator[str]:
        """Yield a sentence for each check that did not pass, and for each loss of rows or values."""
        if self.comparison is not None:
            yield from (loss.advise(self.comparison.b.folder) for loss in self.losses)
        for check in self.reported_checks:
            if check.outcome is not Outcome.PASSED:
                yield _describe_check(check)


@dataclass(frozen=True, slots=True)
class GateIncidents:
    """The incidents from the checks of a gate.

    Args:
        found: Incidents of checks that did not pass.
        replaced: Keys of open incidents that others replace: they end without a message.
    """

    found: tuple[OutcomeIncident, ...] = ()
    replaced: frozenset[str] = field(default_factory=frozenset)


def judge_run(gate: GateSettings | None, baseline: Path | None, folder: Path, matching: Matching) -> GatedRun:
    """Compare a run with its baseline, and apply the gate.

    Runs that are not like for like, or cannot be matched, cause no error: the rules that need no baseline are applied,
    and a gate with other rules is inconclusive at best.

    Args:
        gate: Rules to apply, besides those that metrics bring along; None for none.
        baseline: Run folder of the baseline; None if there is none.
    """
    gate = with_rules_of_metrics(gate, FinishedRun(folder))
    gated = _judge(gate, baseline, folder, matching)
    if gated.is_compared and baseline is not None:
        pair = RunPair.from_runs(FinishedRun(baseline), FinishedRun(folder), matching)
        gated = replace(gated, kept=measure_coverage(pair), least_kept=(gate or GateSettings()).kept_at_least)
    if gate is None or gate.inconclusive != "passed" or gated.result is None:
        return gated
    return replace(gated, may_be_undecided=gated.result.may_count_as_passed and not gated.result.is_noise)


def _judge(gate: GateSettings | None, baseline: Path | None, folder: Path, matching: Matching) -> GatedRun:
    if baseline is None:
        return _judge_alone(gate, folder, matching)
    try:
        compared = compare_runs(baseline, folder, CompareOptions(gate=gate, matching=matching))
    except NotComparableError:
        return _judge_unlike(gate, (baseline, folder), matching)
    except AssayError as error:
        alone = _judge_alone(gate, folder, matching)
        outcome = _at_best_inconclusive(alone.gate) if gate is not None and gate.gate().needs_baseline else alone.gate
        return GatedRun(comparison=alone.comparison, gate=outcome, result=alone.result, obstacle=str(error))
    result = compared.gate
    return GatedRun(comparison=compared, gate=None if result is None else _name(result.outcome), result=result)


def find_gate_incidents(
    gated: GatedRun, open_keys: Collection[str], run_id: str, *, is_accepted: bool = False
) -> GateIncidents:
    """Return the incidents of the checks that did not pass, and of a comparison that was not possible.

    A rule that is no longer in the gate, such as one with another threshold, has not recovered: its incident ends
    without a message. A rule that has failed and cannot be decided any longer has not recovered either, unless the run
    becomes the baseline.

    Args:
        is_accepted: True if the run becomes the baseline.
    """
    found: list[OutcomeIncident] = []
    replaced: set[str] = set()
    now = datetime.now(UTC)
    if gated.obstacle is None:
        known = {key for check in gated.reported_checks for key in _incident_keys(check)}
        replaced.update(key for key in open_keys if key.startswith(_GATE) and key not in known)
    for check in gated.reported_checks:
        failed, undecided = _incident_keys(check)
        if check.outcome is Outcome.PASSED or (gated.may_be_undecided and check.outcome is Outcome.INCONCLUSIVE):
            if check.outcome is Outcome.INCONCLUSIVE and failed in open_keys and not is_accepted:
                found.append(_incident(failed, "gate", _describe_check(check), now, run_id))
            continue
        is_failed = check.outcome is Outcome.FAILED or failed in open_keys
        found.append(_incident(failed if is_failed else undecided, "gate", _describe_check(check), now, run_id))
        if is_failed and undecided in open_keys:
            replaced.add(undecided)
    if gated.obstacle is not None:
        found.append(_incident(NOT_COMPARABLE, "comparison", gated.obstacle, now, run_id))
    return GateIncidents(tuple(found), frozenset(replaced))


def describe_metric_change(metric: MetricComparison) -> str:
    """Return a sentence on the change of a metric."""
    before, after, change, interval, *_ = numbers(metric)
    limits = f"95 % interval {interval}" if interval != "-" else "no interval"
    return f"{title(metric)}: from {before} to {after} ({change}, {limits}), over {describe_size(metric)}"


def describe_unlike(compared: RunComparison, folder: Path) -> str | None:
    """Return a sentence on why a run is not like for like with its baseline; None if it is."""
    differences = compared.differences
    reasons = () if differences is None else differences.describe_serious("the baseline", "this run")
    if not reasons:
        return None
    return (
        f"the run cannot be compared with its baseline like for like ({'; '.join(reasons)}). Restore this, or accept "
        f"the run as the new baseline: assay accept {folder}"
    )


def _judge_alone(gate: GateSettings | None, folder: Path, matching: Matching) -> GatedRun:
    """Check a run by the rules that need no baseline."""
    rules = _without_baseline(gate)
    if rules is None:
        return GatedRun()
    checked = apply_gate(folder, CompareOptions(gate=rules, matching=matching))
    assert checked.gate is not None  # noqa: S101 it was given rules
    return GatedRun(comparison=checked, gate=_name(checked.gate.outcome), result=checked.gate)


def _judge_unlike(gate: GateSettings | None, folders: tuple[Path, Path], matching: Matching) -> GatedRun:
    """Compare runs that are not like for like, and check the second by the rules that need no baseline."""
    alone = _judge_alone(gate, folders[1], matching)
    compared = compare_runs(*folders, CompareOptions(matching=matching))
    obstacle = describe_unlike(compared, folders[1])
    return GatedRun(comparison=compared, gate=_at_best_inconclusive(alone.gate), result=alone.result, obstacle=obstacle)


def _without_baseline(gate: GateSettings | None) -> GateSettings | None:
    """Return the rules of a gate that need no baseline; None if there are none."""
    if gate is None:
        return None
    coverage = tuple(rule.model_copy(update={"paired_at_least": None}) for rule in gate.coverage)
    rules = gate.model_copy(update={"regression": (), "coverage": coverage})
    found = rules.gate()
    return rules if found.absolute or found.coverage else None


def _at_best_inconclusive(outcome: GateOutcome | None) -> GateOutcome:
    return "failed" if outcome == "failed" else "inconclusive"


def _name(outcome: Outcome) -> GateOutcome:
    names: dict[Outcome, GateOutcome] = {
        Outcome.PASSED: "passed",
        Outcome.INCONCLUSIVE: "inconclusive",
        Outcome.FAILED: "failed",
    }
    return names[outcome]


def _outcome_check(check: Check) -> OutcomeCheck:
    interval = None if check.interval is None else (check.interval.low, check.interval.high)
    return OutcomeCheck(
        metric=check.metric,
        rule=check.rule,
        outcome=_name(check.outcome),
        observed=check.observed,
        interval=interval,
        rows=check.rows,
        reason=check.reason,
        slice=None if check.slice is None else {check.slice.column: check.slice.value},
    )


def _incident_keys(check: Check) -> tuple[str, str]:
    """Return the keys of the incidents that a check failed, and that it is inconclusive."""
    subject = f"{check.kind}:{check.subject}:{check.rule}"
    return f"{_GATE}failed:{subject}", f"{UNDECIDED}{subject}"


def _describe_check(check: Check) -> str:
    observed = "nothing" if check.observed is None else f"{check.observed:.3f}"
    interval = f" ({format_interval(check.interval)})" if check.interval else ""
    verdict = "cannot be decided" if check.outcome is Outcome.INCONCLUSIVE else "does not hold"
    reason = check.reason if check.reason.startswith(f"{check.size}, wanted") else f"{check.size}: {check.reason}"
    return f"{check.subject}: '{check.rule}' {verdict}, observed {observed}{interval} over {reason}"


def _incident(key: str, kind: str, sentence: str, since: datetime, run_id: str) -> OutcomeIncident:
    return OutcomeIncident.model_validate(
        {"key": key, "kind": kind, "sentence": sentence, "since": since, "run_id": run_id}
    )
