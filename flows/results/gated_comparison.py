"""Compare two run folders and check them against a gate, for `assay compare` and the flow `compare`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from flows.config.gate_file import AbsoluteSettings, GateSettings
from metric_core.errors import ConfigError, NotComparableError
from metric_core.gates.checks import GateFacts, check_gate
from metric_core.gates.rules import Gate, GateResult, Outcome, Statistic
from metric_core.records import Direction
from metric_core.statistics.comparison import ChangeOutcome, MetricComparison, PairedMetric, compare_paired
from metric_core.statistics.pairs import ScoreColumns
from metric_core.statistics.resampling import SEED
from tasks.calibration.bias_correction import find_corrections
from tasks.calibration.certificates import read_flips
from tasks.calibration.human_agreement import read_agreements
from tasks.comparison.changed_side import ChangedSide, SideFinder
from tasks.comparison.run_comparison import ComparedRun, RunComparison
from tasks.comparison.run_differences import RunDifferences, find_differences
from tasks.comparison.run_pair import Matching, RunPair
from tasks.findings.comparison import CheckedGate, ComparedRows
from tasks.findings.judge_facts import judge_evidence, judge_variances, second_judgments
from tasks.findings.table import compare_findings
from tasks.history.earlier_runs import add_earlier_runs
from tasks.history.nightly_rows import EarlierNights, read_nights
from tasks.history.runs_before import RunsBefore, read_runs_before
from tasks.record.run_record import RunRecord
from tasks.runs.finished_run import FinishedRun

T = TypeVar("T")

_THIS_RUN_ALONE = "The gate decides by this run alone, since it is not known whether its rows are new"
_NO_BASELINE = "There is no baseline: the rules that compare with one are left out."


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareOptions:
    """Options of a comparison.

    Args:
        gate: Gate to check the second run against; None for none but the rules that metrics bring along.
        top: Number of most changed rows to name per metric.
        allow_different: Apply a gate's regression rules to runs that are not like for like.
        without_baseline: Leave out the rules of a gate that need a baseline, if there is none.
    """

    gate: GateSettings | None = None
    matching: Matching = field(default_factory=Matching)
    seed: int = SEED
    top: int = 5
    allow_different: bool = False
    without_baseline: bool = False


def with_rules_of_metrics(gate: GateSettings | None, run: FinishedRun) -> GateSettings | None:
    """Return a gate with the rules that metrics of a run bring along, but for metrics that it has rules about.

    Args:
        gate: Rules of the user; None for none.
    """
    named = {rule.metric for rule in (() if gate is None else gate.absolute)}
    own = []
    for metric in run.record.metrics:
        if metric.tolerated is not None and named.isdisjoint({metric.key, metric.name}):
            is_lower = metric.direction is Direction.LOWER
            statistic, side = (Statistic.GREATEST, "at_most") if is_lower else (Statistic.LEAST, "at_least")
            rule = {"metric": metric.key, "statistic": statistic, side: metric.tolerated}
            own.append(AbsoluteSettings.model_validate(rule))
    if not own:
        return gate
    base = GateSettings() if gate is None else gate
    return base.model_copy(update={"absolute": (*base.absolute, *own)})


@dataclass(frozen=True, slots=True)
class _GatedRuns:
    """The runs that a gate is applied to.

    Args:
        earlier: Runs before the run, with their metrics if nights add up.
        other_judge: Baseline, if another judge judged it.
    """

    pair: RunPair
    earlier: RunsBefore = field(default_factory=RunsBefore)
    other_judge: FinishedRun | None = None


def compare_runs(a: Path, b: Path, options: CompareOptions) -> RunComparison:
    """Compare a run with a baseline.

    Args:
        a: Run folder of the baseline.
        b: Run folder to compare with it.

    Raises:
        RunFolderError: A folder does not hold a finished run.
        ConfigError: Rows cannot be matched or grouped, or a rule of the gate does not fit the runs.
        NotComparableError: The gate has regression rules, and the runs are not like for like.
    """
    before, after = FinishedRun(a), FinishedRun(b)
    options = replace(options, gate=with_rules_of_metrics(options.gate, after))
    options = _group_as_evaluated(options, after)
    gate = None if options.gate is None else options.gate.gate()
    pair = RunPair.from_runs(before, after, options.matching)
    differences = find_differences(pair)
    if gate is not None and gate.regression and differences.serious and not options.allow_different:
        raise NotComparableError(str(a), str(b), differences.serious)
    earlier = _read_earlier(pair, gate)
    other_judge = before if _is_judged_differently(differences) else None
    rows = _compare_rows(_GatedRuns(pair, earlier, other_judge), gate, options)
    return RunComparison(
        a=ComparedRun.from_run(before),
        b=ComparedRun.from_run(after),
        differences=differences,
        metrics=tuple(rows.metrics),
        gate=None if rows.gate is None else rows.gate.result,
        changed=_find_changed(SideFinder(before, pair, judge_evidence(before, after)), rows.metrics),
        seed=options.seed,
        match=options.matching.match,
        by=options.matching.by,
        weights=options.matching.weights,
        unknown_runs=earlier.unknown,
        findings=compare_findings(rows),
    )


def _compare_rows(runs: _GatedRuns, gate: Gate | None, options: CompareOptions) -> ComparedRows:
    """Compare the metrics of two runs, and apply a gate."""
    pair = runs.pair
    columns = add_earlier_runs(pair.columns(), pair, options.matching.match, runs.earlier)
    paired = {column.metric: PairedMetric.from_columns(column) for column in columns if column.a and column.b}
    metrics = tuple(compare_paired(paired.values(), options.seed, options.top))
    checked = _apply_rules(gate, runs, columns, options)
    return ComparedRows(pair, columns, options.seed, metrics, checked, paired)


def compare_rows_of_run(
    gate: GateSettings | None, run: Path, baseline: Path | None, match: str | None = None
) -> ComparedRows:
    """Compare the rows of a run that is not recorded yet, as its own configuration says, without its findings.

    Args:
        gate: Gate to apply; its rules that need a baseline are left out without one. None for none.
        baseline: Run folder of the baseline; None without one.
        match: Column by which rows are matched; None means their ids.

    Raises:
        RunFolderError: A folder does not hold a finished run.
        ConfigError: Rows cannot be matched or grouped, or a rule of the gate does not fit the run.
    """
    pair, rules, options = _open_runs(gate, run, baseline, match)
    return _compare_rows(_GatedRuns(pair, _read_earlier(pair, rules, is_recorded=False)), rules, options)


def _open_runs(
    gate: GateSettings | None, run: Path, baseline: Path | None, match: str | None
) -> tuple[RunPair, Gate | None, CompareOptions]:
    """Return a run with its baseline, the rules that can be applied to them, and how the run groups its rows."""
    before, after = None if baseline is None else FinishedRun(baseline), FinishedRun(run)
    options = _group_as_evaluated(CompareOptions(gate=gate, matching=Matching(match)), after)
    rules = None if gate is None else gate.gate() if before is not None else gate.gate().without_baseline()
    return RunPair.from_runs(before, after, options.matching), rules, options


def _find_changed(finder: SideFinder, metrics: Sequence[MetricComparison]) -> dict[str, ChangedSide]:
    """Return what changed each better or worse metric, if the runs have evidence of it."""
    moved = [metric.metric for metric in metrics if metric.verdict in (ChangeOutcome.BETTER, ChangeOutcome.WORSE)]
    return {metric: finder.find(metric) for metric in moved} if moved and finder.has_evidence else {}


def apply_gate(run: Path, options: CompareOptions) -> RunComparison:
    """Check one run against a gate's absolute and coverage rules.

    With `without_baseline`, the result says that the other rules are left out.

    Args:
        options: Options of the comparison, with a gate.

    Raises:
        RunFolderError: The folder does not hold a finished run.
        ConfigError: There is no gate, it needs a baseline, or one of its rules does not fit the run.
    """
    if options.gate is None:
        raise ConfigError("one run cannot be compared with itself: name a second one, or a gate file with --gate")
    finished = FinishedRun(run)
    options = replace(options, gate=with_rules_of_metrics(options.gate, finished))
    assert options.gate is not None  # noqa: S101 rules were added, if anything
    gate = options.gate.gate()
    left_out: tuple[str, ...] = ()
    if gate.needs_baseline:
        if not options.without_baseline:
            raise ConfigError(
                "the gate compares with a baseline: assay compare BASELINE RUN --gate FILE; --without-baseline leaves "
                "such rules out"
            )
        gate, left_out = gate.without_baseline(), (_NO_BASELINE,)
    options = _group_as_evaluated(options, finished)
    pair = RunPair.from_runs(None, finished, options.matching)
    earlier = _read_earlier(pair, gate)
    rows = _compare_rows(_GatedRuns(pair, earlier), gate, options)
    result = None if rows.gate is None else rows.gate.result
    return RunComparison(
        b=ComparedRun.from_run(finished),
        gate=None if result is None else replace(result, left_out=(*left_out, *result.left_out)),
        seed=options.seed,
        by=options.matching.by,
        unknown_runs=earlier.unknown,
        findings=compare_findings(rows),
    )


def _group_as_evaluated(options: CompareOptions, run: FinishedRun) -> CompareOptions:
    """Return the options with groups and slices of the run's own configuration, unless they name others.

    The columns and values that the gate has rules about are slices in any case.
    """
    matching, config = options.matching, run.config
    gate = None if options.gate is None else options.gate.gate()
    named = matching.slices or tuple(config.get("slices") or ())
    grouped = replace(
        matching,
        by=matching.by or config.get("by"),
        weights=config.get("weights"),
        traffic=config.get("traffic") or {},
        slices=tuple(dict.fromkeys([*named, *(gate.slice_columns if gate else ())])),
        kept=gate.slice_values if gate else {},
    )
    return replace(options, matching=grouped)


def _apply_rules(
    gate: Gate | None, runs: _GatedRuns, columns: Sequence[ScoreColumns], options: CompareOptions
) -> CheckedGate | None:
    """Apply a gate to a run.

    Args:
        gate: Rules to apply; None for none.
    """
    if gate is None or options.gate is None:
        return None
    pair, run, undecided = runs.pair, runs.pair.b.run, options.gate.inconclusive
    needs_labels = any(rule.statistic is Statistic.CORRECTED for rule in gate.absolute)
    corrected = find_corrections(run.folder, run.record) if needs_labels else {}
    is_nightly = _adds_up_nights(gate)
    nights = read_nights(pair.b, runs.earlier) if is_nightly else EarlierNights()
    means = {metric: mean for metric, each in corrected.items() if (mean := each.for_gate()) is not None}
    facts = GateFacts(
        agreements=_of_judges(read_agreements, run, runs.other_judge),
        flips=_of_judges(read_flips, run, runs.other_judge),
        corrected=means,
        slices=pair.slices,
        judge_variances=judge_variances(run.record),
        nights=nights.means,
        unknown_nights=runs.earlier.unknown if is_nightly else "",
    )
    judged = {
        metric: {pair.b.keys[row]: scores for row, scores in found.items()}
        for metric, found in second_judgments(run.record).items()
    }

    def check(scores: Sequence[ScoreColumns]) -> GateResult:
        averaged = [column.average(judged.get(column.metric, {})) for column in scores]
        result = check_gate(gate, averaged, options.seed, facts)
        if nights.doubt:
            result = replace(result, left_out=(*result.left_out, f"{_THIS_RUN_ALONE}: {nights.doubt}"))
        is_settled = result.outcome is not Outcome.INCONCLUSIVE or result.is_noise
        if is_settled or (undecided == "passed" and not result.may_count_as_passed):
            return result
        return replace(result, outcome=Outcome(undecided))

    return CheckedGate(check(columns), check, is_judge_known=bool(facts.judge_variances))


def _read_earlier(pair: RunPair, gate: Gate | None, *, is_recorded: bool = True) -> RunsBefore:
    """Read the runs before a run, if it is compared with another one, or the gate adds up nights.

    Args:
        is_recorded: False for a run that is not recorded yet.
    """
    is_nightly = _adds_up_nights(gate)
    if pair.a is None and not is_nightly:
        return RunsBefore()
    baseline = None if pair.a is None else pair.a.run
    return read_runs_before(pair.b.run, baseline, of_year=is_nightly, is_recorded=is_recorded)


def _adds_up_nights(gate: Gate | None) -> bool:
    """Return whether a gate reads the runs of the year before a run."""
    return gate is not None and gate.looks > 1 and bool(gate.absolute)


def find_unsettled_rows(
    gate: GateSettings, run: Path, baseline: Path | None, match: str | None = None
) -> dict[str, frozenset[str]]:
    """Return metric -> ids of the rows on whose scores the noise of the judge may turn a rule of a gate.

    Args:
        baseline: Run folder of the baseline; None leaves out the rules that need one.
        match: Column by which rows are matched; None means their ids.

    Raises:
        RunFolderError: A folder does not hold a finished run.
        ConfigError: Rows cannot be matched or grouped, or a rule of the gate does not fit the runs.
    """
    pair, rules, options = _open_runs(gate, run, baseline, match)
    columns = {column.metric: column for column in pair.columns()}
    earlier = _read_earlier(pair, rules, is_recorded=False) if _adds_up_nights(rules) else RunsBefore()
    checked = _apply_rules(rules, _GatedRuns(pair, earlier), [*columns.values()], options)
    values = {sliced.column: sliced.values for sliced in pair.slices}
    ids, found = pair.b.row_ids, dict[str, set[str]]()
    for metric, part in () if checked is None else checked.result.unsettled:
        cells = columns[metric].b
        rows = [row for row in cells if part is None or values[part.column][row] == part.value]
        found.setdefault(metric, set()).update(ids[row] for row in rows if cells[row].value is not None)
    return {metric: frozenset(rows) for metric, rows in found.items()}


def _of_judges(
    read: Callable[[RunRecord], Mapping[str, T]], run: FinishedRun, baseline: FinishedRun | None
) -> dict[str, tuple[T, ...]]:
    """Return, per metric, what is known of the judge of the run, and of that of the baseline if it is given.

    Args:
        read: Reads it from the record of a run.
    """
    current = read(run.record)
    earlier = {} if baseline is None else read(baseline.record)
    return {key: (known, *([earlier[key]] if key in earlier else [])) for key, known in current.items()}


def _is_judged_differently(differences: RunDifferences) -> bool:
    return any(item.is_serious for item in differences.settings)
