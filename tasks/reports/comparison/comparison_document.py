"""A comparison as a document, for terminal and Markdown; its page shows parts of it beside its drawings."""

from collections.abc import Iterable, Iterator

from metric_core.gates.rules import Check, GateResult, Outcome
from metric_core.statistics.comparison import MetricComparison, RowChange
from tasks.comparison.run_comparison import ComparedRun, RunComparison
from tasks.documents.blocks import (
    Block,
    Caution,
    Items,
    Line,
    Section,
    Span,
    Table,
    Text,
    Tone,
    make_table,
    own,
)
from tasks.documents.comparison.comparison_words import (
    EXTRA,
    NUMBERS,
    category_sentences,
    changed_sentences,
    check_numbers,
    describe_verdict,
    detectable_sentences,
    headline,
    interval_sentences,
    is_worse,
    level_sentence,
    lost_sentences,
    numbers,
    row_sentences,
    rows_changed_most,
    title,
    undecided_sentence,
)
from tasks.documents.figures import format_fixed
from tasks.documents.markdown import to_markdown
from tasks.documents.timestamps import format_timestamp
from tasks.findings.table import compared_findings
from tasks.runtime.wording import shorten_path

MOST_PASSED = 12
"""Maximum number of passed rules that a terminal lists."""

_RULE_TONES = {Outcome.PASSED: Tone.GOOD, Outcome.FAILED: Tone.BAD, Outcome.INCONCLUSIVE: Tone.UNSURE}
_CHANGE_TONES = {True: Tone.BAD, False: Tone.GOOD, None: Tone.OTHER}


def comparison_markdown(comparison: RunComparison) -> str:
    """Return the comparison as Markdown, for a pull request or an artifact: the gate first."""
    heading = "## Comparison of two runs" if comparison.a else "## Gate"
    gate = [] if comparison.gate is None else [gate_line(comparison.gate), *gate_blocks(comparison)]
    return f"{heading}\n\n{to_markdown([*caution(comparison), *gate, *_scores(comparison, None)])}"


def comparison_document(comparison: RunComparison, most_rows: int) -> list[Block]:
    """Return the comparison for a terminal, where the end is read first: there, the gate is last.

    Args:
        most_rows: Maximum number of changed rows.
    """
    gate = [] if comparison.gate is None else [*gate_blocks(comparison), gate_line(comparison.gate)]
    return [*caution(comparison), *_scores(comparison, most_rows), *gate]


def _scores(comparison: RunComparison, most_rows: int | None) -> Iterator[Block]:
    if comparison.a is not None:
        yield Line(own(headline(comparison.metrics)), is_strong=True)
    for finding in compared_findings(comparison):
        yield from (Line(own(sentence), is_strong=True) for sentence in finding.headline(comparison))
    sides = (("A", comparison.a), ("B" if comparison.a else "run", comparison.b))
    yield Items((*(_side(name, side) for name, side in sides if side), *row_sentences(comparison)))
    if comparison.metrics:
        yield from _metrics(comparison)
        for finding in compared_findings(comparison):
            yield from () if finding.tables is None else finding.tables(comparison)
        yield from _rows(comparison, most_rows)
    for finding in compared_findings(comparison):
        yield from () if finding.last is None else finding.last(comparison)
    yield from settings(comparison)


def caution(comparison: RunComparison) -> Iterator[Block]:
    """Yield why the runs are not like for like, if they are not."""
    if comparison.not_alike:
        sentence = "The scores differ for other reasons than the system under test:"
        yield Caution("Not like for like", sentence, tuple(comparison.not_alike))


def gate_line(gate: GateResult) -> Line:
    """Return the outcome of a gate."""
    return Line(own(f"gate {gate.outcome}", _RULE_TONES[gate.outcome]), is_strong=True)


def gate_blocks(comparison: RunComparison) -> Iterator[Block]:
    """Yield the rules of a gate: those that did not pass, with the reasons, then those that passed."""
    if (gate := comparison.gate) is None:
        return
    passed = [check for check in gate.checks if check.outcome is Outcome.PASSED]
    others = [check for check in gate.checks if check.outcome is not Outcome.PASSED]
    if others:
        others.sort(key=lambda check: list(Outcome).index(check.outcome), reverse=True)
        yield Section(own("Rules that did not pass"), (_checks(others), Items(tuple(map(_reason, others)))))
    if passed:
        words = own(f"{len(passed):,} of {len(gate.checks):,} rules passed")
        yield Section(words, (_checks(passed),), is_folded=True, is_long=len(passed) > MOST_PASSED)
    if (needed := undecided_sentence(gate)) is not None:
        yield Line(own(needed), is_strong=True)
    yield Line(own(level_sentence(gate), Tone.MUTED))
    if gate.left_out:
        yield Items(tuple(gate.left_out), Tone.MUTED)
    said = tuple(sentence for each in compared_findings(comparison) for sentence in each.gate_sentences(comparison))
    if said:
        yield Items(said)


def settings(comparison: RunComparison) -> Iterator[Block]:
    """Yield the settings that differ."""
    found = comparison.differences.settings if comparison.differences else ()
    if found:
        table = make_table(("setting", "A", "B"), [(item.name, item.a, item.b) for item in found], ())
        yield Section(own("What differs between the runs besides the scores"), (table,), is_folded=True)


def _side(name: str, side: ComparedRun) -> Text:
    rows = own(f", {side.rows:,} row{'s' * (side.rows != 1)} of ")
    when = own(f", {format_timestamp(side.created)}" if side.created else "")
    index = (own(", index "), side.index) if side.index else ()
    return (own(f"{name}: "), shorten_path(side.folder), rows, side.source, *index, own(", judge "), side.judge, when)


def _metrics(comparison: RunComparison) -> Iterator[Block]:
    rows: list[tuple[Text, ...]] = [
        (title(metric), *numbers(metric), describe_verdict(metric)) for metric in comparison.metrics
    ]
    yield make_table(("metric", *NUMBERS, "outcome"), rows, NUMBERS, EXTRA)
    yield Line(
        own(
            "Means over the rows scored in both runs. p allows for the number of metrics: above 0.05, chance alone "
            "could be the reason. ↓ lower is better. No clear difference does not mean that there is none.",
            Tone.MUTED,
        )
    )
    sentences = (
        *changed_sentences(comparison),
        *(sentence for each in compared_findings(comparison) for sentence in each.sentences(comparison)),
        *lost_sentences(comparison),
        *detectable_sentences(comparison),
        *interval_sentences(comparison),
        *category_sentences(comparison),
    )
    if sentences:
        yield Items(sentences)


def _rows(comparison: RunComparison, most: int | None) -> Iterator[Block]:
    ordered = rows_changed_most(comparison.metrics)[:most]
    if ordered:
        rows = [(row, tuple(part for found in changes for part in _change(*found))[:-1]) for row, changes in ordered]
        yield Section(own("Rows that changed most"), (make_table(("row", "A → B"), rows, ()),), is_folded=True)


def _change(metric: MetricComparison, change: RowChange) -> tuple[str | Span, ...]:
    tone = _CHANGE_TONES[is_worse(metric, change.b - change.a)]
    return metric.metric, own(" "), own(f"{format_fixed(change.a)}→{format_fixed(change.b)}", tone), own(", ")


def _checks(checks: Iterable[Check]) -> Table:
    rows = [
        (
            (check.subject, own(f": {check.rule}")),
            *check_numbers(check),
            f"{check.rows:,}",
            own(check.outcome, _RULE_TONES[check.outcome]),
        )
        for check in checks
    ]
    return make_table(("rule", "observed", "interval", "rows", "outcome"), rows, ("observed", "interval", "rows"))


def _reason(check: Check) -> Text:
    return own(f"{check.outcome}: "), check.subject, own(f", {check.rule}: {check.reason}")
