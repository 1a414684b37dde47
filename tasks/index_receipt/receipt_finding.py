"""Show what the check of a rebuilt index found, in the run of its version and beside the scores of a comparison."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from tasks.comparison.run_comparison import RunComparison
from tasks.documents.blocks import Block, Line, Section, Tone, own
from tasks.findings.comparison import ComparedRows, FindingComparison
from tasks.findings.finding import Finding, RunRecords
from tasks.findings.parts import Figure
from tasks.index_receipt.index_comparison import CheckedIndex
from tasks.index_receipt.receipt_words import describe_finding, findings_table, headline
from tasks.record.findings import FindingPart
from tasks.sources.index_checks import IndexFinding


class IndexReceipt(FindingPart):
    """The result of the check of an index before its run began.

    Args:
        result: The result in a sentence.
        documents: Number of documents of the index.
        chunks: Number of its chunks.
        touched: Sentence on the rows whose scores must be expected to move; None if there was no earlier index.
    """

    entry: ClassVar[str] = "index_receipt"

    result: str
    documents: int
    chunks: int
    findings: tuple[IndexFinding, ...] = ()
    touched: str | None = None

    @property
    def sentences(self) -> Iterator[str]:
        """The result and the findings in words."""
        size = f"{self.documents:,} documents, {self.chunks:,} chunks"
        yield f"the index ({size}) was checked before the evaluation: {self.result}"
        yield from map(describe_finding, self.findings)
        if self.touched is not None and self.findings:
            yield self.touched


def entry_of(checked: CheckedIndex) -> IndexReceipt:
    """Return the entry of a check in the record of a run."""
    documents, chunks = checked.sizes[-1]
    return IndexReceipt(
        result=headline(checked),
        documents=documents,
        chunks=chunks,
        findings=checked.findings,
        touched=None if checked.touched is None else checked.touched.sentence,
    )


def receipt_lines(run: RunRecords) -> Iterator[str]:
    """Yield lines on the index."""
    if (found := run.record.find(IndexReceipt)) is not None:
        yield from found.sentences


def receipt_section(run: RunRecords) -> list[Block]:
    """Return the section of the report."""
    found = run.record.find(IndexReceipt)
    return [] if found is None else [Section(own("The index"), tuple(_blocks(found)))]


def _blocks(found: IndexReceipt) -> Iterator[Block]:
    first, *_ = found.sentences
    is_beyond = any(each.is_beyond for each in found.findings)
    yield Line(own(first, Tone.BAD if is_beyond else Tone.PLAIN), is_strong=is_beyond)
    if found.findings:
        yield findings_table(found.findings)
    if found.touched is not None:
        yield Line(own(found.touched))


def receipt_figures(run: RunRecords) -> Iterator[Figure]:
    """Yield the share of each finding."""
    found = run.record.find(IndexReceipt)
    for each in () if found is None else found.findings:
        yield Figure(
            "index_change_share",
            "Share of documents or chunks of a rebuilt index that the check of the index named.",
            each.share,
            {"kind": each.kind},
        )


@dataclass(frozen=True, slots=True)
class ComparedReceipt:
    """The result of the check of the index of the later run."""

    entry: ClassVar[str] = "index_receipt"

    found: IndexReceipt

    def to_json(self) -> dict[str, Any]:
        """Return the entry."""
        return self.found.model_dump(mode="json")


def compare(rows: ComparedRows) -> ComparedReceipt | None:
    """Return what the check of the later index found; None without one."""
    found = rows.pair.b.run.record.find(IndexReceipt)
    return None if found is None else ComparedReceipt(found)


def compared_sentences(comparison: RunComparison) -> Iterator[str]:
    """Yield the same for a comparison."""
    compared = comparison.find(ComparedReceipt)
    if compared is not None:
        yield from compared.found.sentences


def opening(comparison: RunComparison) -> Iterator[str]:
    """Yield the same for an alert, if the index has changed."""
    compared = comparison.find(ComparedReceipt)
    if compared is not None and compared.found.findings:
        yield from compared.found.sentences


INDEX_RECEIPT = Finding(
    record=(IndexReceipt,),
    lines=receipt_lines,
    section=receipt_section,
    figures=receipt_figures,
    comparison=FindingComparison(compare=compare, sentences=compared_sentences, opening=opening),
)
