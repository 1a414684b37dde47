"""Format the sentences and numbers of a comparison, for terminal, Markdown and page."""

from collections import Counter
from collections.abc import Iterator, Sequence

from metric_core.gates.rules import Check, GateResult
from metric_core.records import Direction
from metric_core.statistics.comparison import ChangeOutcome, MetricComparison, RowChange
from metric_core.statistics.resampling import LEVEL, Interval
from metric_core.statistics.summary import TOO_NARROW, describe_groups
from tasks.comparison.run_comparison import RunComparison
from tasks.comparison.run_differences import RowDifferences
from tasks.comparison.written_rows import describe_retired, describe_written
from tasks.documents.blocks import Span, Tone, own
from tasks.documents.figures import format_fixed
from tasks.documents.run.summary_rows import LOWER_IS_BETTER
from tasks.runtime.wording import format_percent

NUMBERS = ("A", "B", "B - A", "95 % interval", "p", "rows")
EXTRA = ("p",)
_TONES = {ChangeOutcome.BETTER: Tone.GOOD, ChangeOutcome.WORSE: Tone.BAD, ChangeOutcome.DIFFERENT: Tone.OTHER}
_BRIEF = {ChangeOutcome.UNCLEAR: "unclear", ChangeOutcome.UNDECIDED: "undecided", ChangeOutcome.NOT_COMPARED: "-"}
_COUNTED = {
    ChangeOutcome.WORSE: "worse",
    ChangeOutcome.BETTER: "better",
    ChangeOutcome.DIFFERENT: "different",
    ChangeOutcome.UNCLEAR: "without a clear difference",
    ChangeOutcome.UNDECIDED: "undecided for missing scores",
    ChangeOutcome.NOT_COMPARED: "not compared",
}
_COLUMNS = {"extras": "other columns"}


def format_signed(value: float) -> str:
    """Return a difference with its sign and three decimals.

    >>> format_signed(0.5), format_signed(-0.25), format_signed(-0.0001)
    ('+0.500', '-0.250', '0.000')
    """
    text = format_fixed(value)
    return text if float(text) <= 0 else f"+{text}"


def format_p(p: float) -> str:
    """Return a p-value.

    >>> format_p(0.5), format_p(0.00001)
    ('0.500', '<0.001')
    """
    return "<0.001" if p < 0.001 else f"{p:.3f}"


def format_interval(interval: Interval | None, is_signed: bool = False) -> str:
    """Return an interval, or a dash.

    >>> format_interval(Interval(-0.1, 0.2), is_signed=True)
    '-0.100 to +0.200'
    """
    show = format_signed if is_signed else format_fixed
    return "-" if interval is None else f"{show(interval.low)} to {show(interval.high)}"


def title(metric: MetricComparison) -> str:
    """Return a metric's key, the scale of its rows if they have one, and an arrow if lower is better."""
    name = metric.metric if metric.scale is None else f"{metric.metric} on {metric.scale}"
    return f"{name} {LOWER_IS_BETTER}" if metric.direction is Direction.LOWER else name


def headline(metrics: Sequence[MetricComparison]) -> str:
    """Return the number of metrics per outcome, in one line.

    >>> headline([])
    'no metric in both runs'
    """
    counted = count_outcomes(metrics)
    if not counted:
        return "no metric in both runs"
    number, words = counted[0].split(" ", 1)
    noun = "metric" if number == "1" else "metrics"
    return ", ".join([f"{number} {noun} {words}", *counted[1:]])


def count_outcomes(metrics: Sequence[MetricComparison]) -> list[str]:
    """Return the number of comparisons per outcome, in words.

    >>> count_outcomes([])
    []
    """
    counts = Counter(metric.verdict for metric in metrics)
    return [f"{counts[verdict]} {words}" for verdict, words in _COUNTED.items() if counts[verdict]]


def rows_changed_most(
    metrics: Sequence[MetricComparison],
) -> list[tuple[str, list[tuple[MetricComparison, RowChange]]]]:
    """Return the most changed rows with their changes, ordered by the number of metrics that changed."""
    named: dict[str, list[tuple[MetricComparison, RowChange]]] = {}
    for metric in metrics:
        for change in metric.difference.most_changed if metric.difference else ():
            named.setdefault(change.row, []).append((metric, change))
    return sorted(named.items(), key=lambda item: -len(item[1]))


def is_worse(metric: MetricComparison, change: float) -> bool | None:
    """Return whether a change is for the worse; None for a metric without a direction."""
    if metric.direction is Direction.NEITHER:
        return None
    return (change < 0) == (metric.direction is Direction.HIGHER)


def numbers(metric: MetricComparison) -> tuple[str, ...]:
    """Return mean in A, mean in B, difference, interval, p-value, rows; dashes for missing numbers."""
    change = metric.difference
    rows = str(metric.rows.paired or "-")
    if change is None:
        return ("-",) * 5 + (rows,)
    return (
        format_fixed(change.mean_a),
        format_fixed(change.mean_b),
        format_signed(change.mean),
        format_interval(change.interval, is_signed=True),
        "-" if change.p_adjusted is None else format_p(change.p_adjusted),
        rows,
    )


def row_sentences(comparison: RunComparison) -> Iterator[str]:
    """Yield sentences on versions, and on the differences, matching and grouping of the rows."""
    if comparison.by is None and comparison.b.repetition is not None:
        yield comparison.b.repetition
    if comparison.b.judgments is not None:
        yield f"judgments of {'B' if comparison.a else 'the run'}: {comparison.b.judgments}"
    if comparison.differences is None:
        return
    if (note := comparison.differences.version_note) is not None:
        yield note
    if (note := comparison.differences.shift_note) is not None:
        yield note
    rows = comparison.differences.rows
    yield from _count_sentences(rows)
    if rows.retired or rows.new:
        yield "differences and p are of the rows in both: the questions that both versions of the index answer"
    if rows.only_a > rows.retired and rows.only_b > rows.new and comparison.match is None:
        yield (
            "rows without an id column get ids from their content, so that a changed row counts as another row: "
            "match by a column that stays the same, such as --match user_input"
        )
    yield from _unit_sentences(comparison)


def _unit_sentences(comparison: RunComparison) -> Iterator[str]:
    if comparison.match:
        yield f"rows matched by {comparison.match}"
    if comparison.by:
        yield f"rows with the same {comparison.by} are resampled together"
    if comparison.weights:
        yield f"rows count by their weights ({comparison.weights}), which are those of B"


def question_sentence(comparison: RunComparison) -> str | None:
    """Return the sentence on retired and new questions from an index; None if all are in both runs."""
    rows = None if comparison.differences is None else comparison.differences.rows
    return None if rows is None or not (rows.retired or rows.new) else next(_count_sentences(rows))


def _count_sentences(rows: RowDifferences) -> Iterator[str]:
    """Yield sentences on the rows that one run or both have, and on what differs in them."""
    retired = describe_retired(rows.retired, rows.only_a, rows.retired_from) if rows.retired else ""
    new = describe_written(rows.new, rows.only_b, "new") if rows.new else ""
    sides = (("A", rows.only_a, retired), ("B", rows.only_b, new))
    only = [f"{count} only in {side}" + (f" ({what})" if what else "") for side, count, what in sides if count]
    differing = ", ".join(f"{_COLUMNS.get(name, name)} in {count}" for name, count in rows.columns.items())
    both = f"{rows.both} row{'s' * (rows.both != 1)} in both"
    if rows.retired or rows.new:  # Markdown shortens long sentences: the counts come first
        yield ", ".join([both, *only])
        yield from [f"what differs in the rows in both: {differing}"] if differing else ()
    else:
        yield ", ".join([f"{both} (what differs: {differing})" if differing else both, *only])


def changed_sentences(comparison: RunComparison) -> Iterator[str]:
    """Yield sentences on what changed metrics that are better or worse: the system or the judge."""
    moved: dict[str, list[str]] = {}
    for metric in comparison.metrics:
        if (side := comparison.changed.get(metric.metric)) is not None:
            moved.setdefault(f"{side.sentence[0].lower()}{side.sentence[1:]}", []).append(title(metric))
    yield from (f"{', '.join(metrics)}: {sentence}" for sentence, metrics in moved.items())


def lost_sentences(comparison: RunComparison) -> Iterator[str]:
    """Yield sentences on rows that are left out: scored in one run only, or on different scales."""
    lost: list[str] = []
    possible: list[str] = []
    selective: list[str] = []
    for metric in comparison.metrics:
        rows, missing = metric.rows, metric.difference.missing if metric.difference else None
        counts = ((rows.unscored_b, "in A only"), (rows.unscored_a, "in B only"), (rows.rescaled, "on other scales"))
        if words := ", ".join(f"{count} {what}" for count, what in counts if count):
            lost.append(f"{metric.metric} ({words})")
        if missing is not None and missing.worst_case is not None:
            limits = missing.limits if missing.is_selective else None
            shown = "" if limits is None else f" (95 % limits {format_interval(limits, True)})"
            possible.append(f"{metric.metric} {format_interval(missing.worst_case, True)}{shown}")
            selective += [metric.metric] if missing.is_selective else []
    for lead, metrics in (
        ("rows left out, because only one run has a score", lost),
        ("with the worst and the best possible scores there, the difference would be", possible),
        ("the runs lack scores of different numbers of rows, or of different rows, by more than chance", selective),
    ):
        if metrics:
            yield f"{lead}: {', '.join(metrics)}"


def detectable_sentences(comparison: RunComparison) -> Iterator[str]:
    """Yield a sentence on the smallest difference that would have been found, of metrics without a clear one."""
    seen = [
        f"{title(metric)} {metric.difference.detectable:.2g}"
        for metric in comparison.metrics
        if metric.verdict is ChangeOutcome.UNCLEAR and metric.difference and metric.difference.detectable is not None
    ]
    if seen:
        yield f"so large a true difference would be found in 80 of 100 such comparisons: {', '.join(seen)}"


def interval_sentences(comparison: RunComparison) -> Iterator[str]:
    """Yield sentences on what the intervals assume, on a small p without a clear difference, and on serial order."""
    yield from _assumptions(comparison)
    unclear = [(title(each), each.difference) for each in comparison.metrics if each.verdict is ChangeOutcome.UNCLEAR]
    torn = [name for name, found in unclear if found and found.p_adjusted is not None and found.p_adjusted <= 1 - LEVEL]
    if torn:
        yield (
            f"p is small in {', '.join(torn)}, but the interval includes 0, and a difference is clear only if both say "
            "so: the interval also allows for scores that no row has"
        )
    found = [title(metric) for metric in comparison.metrics if metric.difference and metric.difference.is_serial]
    if found:
        yield f"rows that follow each other change alike in {', '.join(found)}: {TOO_NARROW}"


def _assumptions(comparison: RunComparison) -> Iterator[str]:
    """Yield what the intervals assume of the noise that all rows of a run may share."""
    found_in = ((title(each), each.difference) for each in comparison.metrics)
    tested = [(name, found.earlier) for name, found in found_in if found is not None and found.interval is not None]
    unknown = [name for name, found in tested if found is None or found.noise is None]
    if unknown:
        which = "" if len(unknown) == len(tested) else f" in {', '.join(unknown)}"
        why = f"are not known: {comparison.unknown_runs}" if comparison.unknown_runs else "are too few"
        yield (
            f"assumed{which}: nothing moves all rows of a run at once, as a busy server or a new version of the judge "
            f"may. Earlier runs of these rows would show it, but {why}"
        )
    for runs in sorted({found.runs for _, found in tested if found and found.weight}):
        names = [name for name, found in tested if found and found.weight and found.runs == runs]
        yield (
            f"assumed: only chance tells A from the {runs} runs before it, since its rows explain how far it lies from "
            f"them; so B is compared with all of them in {', '.join(names)}"
        )
    moved = [f"{name} by {found.noise:.2g}" for name, found in tested if found and found.noise]
    if moved:
        yield (
            f"the runs before A moved by more than their rows explain ({', '.join(moved)}): the intervals allow for as "
            "much again"
        )


def describe_size(metric: MetricComparison) -> str:
    """Return the number of paired rows, and of groups if rows are grouped."""
    rows, found = f"{metric.rows.paired:,} rows", metric.difference
    if found is None or found.groups is None:
        return rows
    return f"{rows} of {describe_groups(found.groups, found.independent_groups)}"


def category_sentences(comparison: RunComparison) -> Iterator[str]:
    """Yield a sentence per metric whose values are categories, with the counts of each in both runs."""
    for metric in comparison.metrics:
        if metric.categories:
            counts = ", ".join(f"{label} {a} → {b}" for label, (a, b) in metric.categories.items())
            yield f"{metric.metric}: {counts}; {metric.relabelled} rows changed theirs"


def check_numbers(check: Check) -> tuple[str, str]:
    """Return the observed value of a check and its interval."""
    return ("-" if check.observed is None else format_fixed(check.observed), format_interval(check.interval))


def check_facts(check: Check) -> str:
    """Return the observed value of a check, its interval and its number of rows in words."""
    observed, interval = check_numbers(check)
    return f"observed {observed}, interval {interval}, {check.size}"


def undecided_sentence(gate: GateResult) -> str | None:
    """Return how many rows would decide a gate, and which margin these rows decide; None if more rows are no remedy."""
    found = [(each, each.interval) for each in gate.checks if each.rows_needed is not None]
    margins = [
        max(limits.high - each.observed, each.observed - limits.low)
        for each, limits in found
        if limits is not None and each.observed is not None
    ]
    if not margins:
        return None
    rows = max(each.rows_needed or 0 for each, _ in found)
    rules = f"the {len(found)} undecided rules" if len(found) > 1 else "the undecided rule"
    return (
        f"about {rows:,} rows would decide {rules}, if the means stay as they are; these rows decide a mean that is "
        f"{max(margins):.2g} or more away from its threshold"
    )


def level_sentence(gate: GateResult) -> str:
    """Return a sentence on how often a gate errs."""
    level, chance = format_percent(gate.level), format_percent(1 - gate.level)
    runs = "runs" if gate.looks == 1 else f"series of {gate.looks:,} runs"
    looks = "" if gate.looks == 1 else f"; the one towards failure allows for {gate.looks:,} runs"
    return (
        f"If every true value meets its threshold, the gate fails in at most {chance} of {runs}; a rule whose true "
        f"value misses its threshold passes in at most {chance} of runs. So each end of an interval holds at {level} "
        f"by itself{looks}, and may differ a little from that of the comparison, whose ends hold together. All this "
        "holds if rows, or the groups of --by, do not move together. Rules about coverage and about the least and "
        "greatest value are about these rows alone, and need no test."
    )


def describe_verdict(metric: MetricComparison, note: str = "") -> Span:
    """Return the verdict on a metric.

    Args:
        note: Words after the verdict.
    """
    verdict = metric.verdict
    return own(f"{verdict}{note}", _TONES.get(verdict, Tone.MUTED), f"{_BRIEF.get(verdict, verdict)}{note}")
