"""Write a comparison as Markdown, for a pull request or an artifact.

Text of the data and of settings is in code spans, where no markup, link or mention works.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape

from metric_core.gates.rules import Check, GateResult, Outcome
from metric_core.parsing.control_characters import escape_controls
from metric_core.statistics.comparison import ChangeOutcome
from metric_core.statistics.slice_comparison import SliceComparison
from tasks.comparison.run_comparison import ComparedRun, RunComparison
from tasks.reports.comparison.comparison_words import (
    category_sentences,
    cause_sentences,
    check_numbers,
    correction_sentences,
    detectable_sentences,
    diagnosis_rows,
    diagnosis_sentences,
    format_signed,
    headline,
    level_sentence,
    lost_sentences,
    numbers,
    row_sentences,
    title,
)
from tasks.reports.comparison.slices_words import headline_of_slices, worst_slices_first
from tasks.reports.figures import format_fixed
from tasks.reports.timestamps import format_timestamp
from tasks.runtime.wording import shorten_path

SIGNS = {
    ChangeOutcome.BETTER: "🟢 better",
    ChangeOutcome.WORSE: "🔴 worse",
    ChangeOutcome.DIFFERENT: "🔵 different",
    ChangeOutcome.UNCLEAR: "no clear difference",
    ChangeOutcome.UNDECIDED: "undecided: scores are missing",
    ChangeOutcome.NOT_COMPARED: "not compared",
}
OUTCOMES = {Outcome.PASSED: "✅ passed", Outcome.FAILED: "❌ failed", Outcome.INCONCLUSIVE: "❔ inconclusive"}

_LONGEST = 200
_MOST_SLICES = 100
_BEFORE_A_BAR = re.compile(r"\\(?=\\*\|)")


def comparison_markdown(comparison: RunComparison) -> str:
    """Return the comparison as Markdown."""
    return "\n".join(_lines(comparison)) + "\n"


def code(text: str) -> str:
    r"""Return a text as a code span that it cannot break out of, in a table or outside.

    >>> code("a|b`<img>\n@all")
    "`a\\|b'<img> @all`"

    A backslash before a bar would escape the one that escapes the bar:

    >>> print(code(r"a\|b"))
    `a\ \|b`
    """
    plain = escape_controls(" ".join(text.split())).replace("`", "'")
    plain = _BEFORE_A_BAR.sub(r"\\ ", plain).replace("|", "\\|")
    shown = plain if len(plain) <= _LONGEST else f"{plain[:_LONGEST]}…"
    return f"`{shown}`" if shown else "-"


def _lines(comparison: RunComparison) -> Iterator[str]:
    yield "## Comparison of two runs" if comparison.a else "## Gate"
    yield ""
    if comparison.not_alike:
        yield "> [!WARNING]"
        yield "> **Not like for like.** The scores differ for other reasons than the system under test:"
        yield from (f"> - {code(reason)}" for reason in comparison.not_alike)
        yield ""
    if comparison.gate:
        yield from _gate(comparison.gate)
    if comparison.a:
        yield f"**{headline(comparison.metrics)}**"
        yield ""
    yield from (f"- **{name}** {_side(side)}" for name, side in (("A", comparison.a), ("B", comparison.b)) if side)
    yield from (f"- {code(sentence)}" for sentence in row_sentences(comparison))
    yield ""
    if comparison.metrics:
        yield from _metrics(comparison)
    yield from _diagnosis(comparison)
    yield from _settings(comparison)


def _gate(gate: GateResult) -> Iterator[str]:
    yield f"**Gate: {OUTCOMES[gate.outcome]}**"
    yield ""
    passed = [check for check in gate.checks if check.outcome is Outcome.PASSED]
    others = [check for check in gate.checks if check.outcome is not Outcome.PASSED]
    if others:
        yield from _checks(sorted(others, key=lambda check: list(Outcome).index(check.outcome), reverse=True))
    if passed:
        yield f"<details><summary>{len(passed)} of {len(gate.checks)} rules passed</summary>"
        yield ""
        yield from _checks(passed)
        yield "</details>"
        yield ""
    yield level_sentence(gate)
    yield ""
    if gate.left_out:
        yield from (f"- {code(sentence)}" for sentence in gate.left_out)
        yield ""


def _checks(checks: Iterable[Check]) -> Iterator[str]:
    rows = (
        (
            OUTCOMES[check.outcome],
            code(check.subject),
            check.rule,
            *check_numbers(check),
            str(check.rows),
            _reason(check.reason),
        )
        for check in checks
    )
    yield from _table(("", "metric", "rule", "observed", "interval", "rows", "why"), rows, "lllrrrl")
    yield ""


def _reason(reason: str) -> str:
    """Return a reason; the command in it, if any, becomes a code span because it names a metric of the user."""
    before, _, rest = reason.partition("`")
    command, _, after = rest.rpartition("`")
    return f"{escape(before, quote=False)}{code(command)}{escape(after, quote=False)}" if command else escape(reason)


def _side(side: ComparedRun) -> str:
    rows = f"{side.rows:,} rows of {code(side.source)}"
    return f"{code(shorten_path(side.folder))}, {rows}, judge {code(side.judge)}, {format_timestamp(side.created)}"


def _metrics(comparison: RunComparison) -> Iterator[str]:
    heading = ("metric", "A", "B", "B - A", "95 % interval", "p", "effect", "rows", "")
    rows = ((code(title(metric)), *numbers(metric), SIGNS[metric.verdict]) for metric in comparison.metrics)
    yield from _table(heading, rows, "lrrrrrrrl")
    yield ""
    yield (
        "Means over the rows scored in both runs; p after Holm's correction over all metrics; effect: the mean "
        "difference over its standard deviation. ↓ lower is better. No clear difference does not mean that there is "
        "none."
    )
    yield ""
    sentences = [
        *cause_sentences(comparison),
        *correction_sentences(comparison),
        *lost_sentences(comparison),
        *detectable_sentences(comparison),
        *category_sentences(comparison),
    ]
    yield from (f"- {code(sentence)}" for sentence in sentences)
    if sentences:
        yield ""
    yield from _slices(comparison.slices)
    yield from _rows(comparison)


def _slices(slices: Sequence[SliceComparison]) -> Iterator[str]:
    if not slices:
        return
    ordered = worst_slices_first(slices)
    out = [part for part in ordered if part.stands_out]
    others = [part for part in ordered if not part.stands_out and part.comparison.difference is not None]
    yield code(headline_of_slices(slices))
    yield ""
    if out:
        yield from _slice_rows(out)
    if others:
        yield f"<details><summary>{len(others)} without a clear difference</summary>"
        yield ""
        yield from _slice_rows(others[:_MOST_SLICES])
        if len(others) > _MOST_SLICES:
            yield f"{len(others) - _MOST_SLICES} more are in the page and in the JSON."
            yield ""
        yield "</details>"
        yield ""


def _slice_rows(parts: Sequence[SliceComparison]) -> Iterator[str]:
    heading = ("slice", "metric", "A", "B", "B - A", "95 % interval", "p", "effect", "rows", "")
    rows = (
        (
            code(str(part.slice)),
            code(title(part.comparison)),
            *numbers(part.comparison),
            f"{SIGNS[part.comparison.verdict]}{', small' if part.is_small else ''}",
        )
        for part in parts
    )
    yield from _table(heading, rows, "llrrrrrrrl")
    yield ""
    yield "p after Holm's correction over all slices and metrics."
    yield ""


def _rows(comparison: RunComparison) -> Iterator[str]:
    changes = [
        (code(title(metric)), code(row.row), format_fixed(row.a), format_fixed(row.b), format_signed(row.b - row.a))
        for metric in comparison.metrics
        if metric.difference
        for row in metric.difference.most_changed
    ]
    if changes:
        yield "<details><summary>Rows that changed most</summary>"
        yield ""
        yield from _table(("metric", "row", "A", "B", "B - A"), changes, "llrrr")
        yield ""
        yield "</details>"
        yield ""


def _diagnosis(comparison: RunComparison) -> Iterator[str]:
    if comparison.diagnosis is None:
        return
    yield from (f"**Diagnosis.** {sentence}" for sentence in diagnosis_sentences(comparison))
    yield ""
    if rows := diagnosis_rows(comparison):
        table = ((before, after, cause, count, code(names)) for before, after, cause, count, names in rows)
        yield from _table(("A", "B", "because of", "rows", "such as"), table, "lllrl")
        yield ""


def _settings(comparison: RunComparison) -> Iterator[str]:
    settings = comparison.differences.settings if comparison.differences else ()
    if settings:
        yield "<details><summary>What differs between the runs besides the scores</summary>"
        yield ""
        rows = ((code(item.name), code(item.a), code(item.b)) for item in settings)
        yield from _table(("setting", "A", "B"), rows, "lll")
        yield ""
        yield "</details>"
        yield ""


def _table(heading: Sequence[str], rows: Iterable[Sequence[str]], sides: str) -> Iterator[str]:
    yield f"| {' | '.join(heading)} |"
    yield f"|{'|'.join('---:' if side == 'r' else '---' for side in sides)}|"
    yield from (f"| {' | '.join(row)} |" for row in rows)
