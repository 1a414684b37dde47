"""Word the check of an index, for the terminal, a page and programs."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from typing import Any

from tasks.documents.blocks import Block, Line, Section, Table, Text, Tone, make_table, own
from tasks.index_receipt.index_comparison import CheckedIndex
from tasks.runtime.wording import format_percent
from tasks.sources.index_checks import IndexFinding

_MOST_ROWS = 20


def headline(checked: CheckedIndex) -> str:
    """Return the result of a check in one sentence."""
    if checked.beyond:
        return f"beyond the limits: {', '.join(each.kind for each in checked.beyond)}"
    if checked.is_plain_rechunking:
        return "the text is the same, cut into other chunks"
    if checked.old is None:
        return "within the limits" if checked.faults else "no fault found; the next index is compared with this one"
    return "within the limits" if checked.faults else "the same index: nothing has changed"


def blocks_of_check(checked: CheckedIndex) -> Iterator[Block]:
    """Yield the result of a check as blocks, without its headline."""
    sizes = " -> ".join(f"{documents:,} documents, {chunks:,} chunks" for documents, chunks in checked.sizes)
    yield Line(own(sizes))
    if checked.findings:
        yield findings_table(checked.findings)
    if checked.touched is None:
        return
    rows = islice(checked.touched.rows.items(), _MOST_ROWS)
    listed = make_table(("row", "what is touched"), ((row, own(", ".join(why))) for row, why in rows), ())
    more = len(checked.touched.rows) - _MOST_ROWS
    last = [Line(own(f"and {more:,} more rows; --json lists all"))] if more > 0 else []
    parts = [Line(own(checked.touched.sentence)), *([listed, *last] if checked.touched.rows else ())]
    yield Section(own("Rows"), tuple(parts))


def findings_table(findings: Iterable[IndexFinding]) -> Table:
    """Return a table of findings."""
    rows: list[Sequence[Text]] = [
        (
            own(each.kind, Tone.BAD if each.is_beyond else Tone.PLAIN),
            f"{each.count:,}",
            show_share(each.share),
            "any" if each.limit is None else show_share(each.limit),
            each.sentence,
            ", ".join(each.examples),
        )
        for each in findings
    ]
    return make_table(("finding", "count", "share", "limit", "what", "such as"), rows, ("count", "share", "limit"))


def show_share(share: float) -> str:
    """Return a share as a percentage, with a decimal where it is small.

    >>> show_share(0.031), show_share(0.5), show_share(0)
    ('3.1 %', '50 %', '0 %')
    """
    return format_percent(share, 1 if 0 < share < 0.1 else 0)


def describe_finding(finding: IndexFinding) -> str:
    """Return a finding as a sentence with its share, limit and examples."""
    limit = "" if finding.limit is None else f", at most {show_share(finding.limit)}"
    examples = f": {', '.join(finding.examples)}" if finding.examples else ""
    return f"{finding.sentence} ({show_share(finding.share)}{limit if finding.is_beyond else ''}){examples}"


def content_of_check(checked: CheckedIndex) -> dict[str, Any]:
    """Return the result of a check as JSON."""
    names = ("documents", "chunks")
    sizes = [dict(zip(names, each, strict=True)) for each in checked.sizes]
    touched = None
    if checked.touched is not None:
        touched = {"rows": {name: [*why] for name, why in checked.touched.rows.items()}, "of": checked.touched.of}
    return {
        "result": headline(checked),
        "passed": not checked.beyond,
        "plain_rechunking": checked.is_plain_rechunking,
        "new": sizes[-1],
        "old": sizes[0] if checked.old is not None else None,
        "findings": [{**asdict(each), "share": each.share, "is_beyond": each.is_beyond} for each in checked.findings],
        "touched": touched,
    }
