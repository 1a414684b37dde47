"""Check an index: read its chunks or its receipt, and compare it with an earlier one."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
import pyarrow as pa

from metric_core.errors import ConfigError
from tasks.index_receipt.index_changes import IndexChanges
from tasks.index_receipt.receipt import IndexFacts, Receipt, ReceiptMaker, find_receipt
from tasks.index_receipt.receipt_findings import check_limits, find_changes, with_limit
from tasks.index_receipt.touched_rows import TouchedRows, find_touched
from tasks.options.source_options import SourceOptions
from tasks.sources.chunk_file import IndexChunk, read_index
from tasks.sources.index_checks import IndexCheck, IndexFinding, open_checks


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """An index to check, and how.

    Args:
        new: Addresses of its chunks, or of its receipt.
        old: The same of the index that it is compared with; empty for none.
        limits: Kind of a finding -> share from which on the index should not be used.
        options: Names of the columns of chunks.
        redact: Function that redacts texts and ids, as those of the rows are.
        rows: Function that reads the samples that the index may touch from the start; None without any.
    """

    new: Sequence[str]
    old: Sequence[str] = ()
    limits: Mapping[str, float | None] = field(default_factory=dict)
    options: SourceOptions = field(default_factory=SourceOptions)
    redact: Callable[[str], str] | None = None
    rows: Callable[[], Iterable[pa.Table]] | None = None

    def chunks(self, addresses: Sequence[str]) -> Iterator[IndexChunk]:
        """Yield the chunks at addresses, one after the other."""
        return chain.from_iterable(read_index(address, self.redact, self.options) for address in addresses)


@dataclass(frozen=True, slots=True)
class CheckedIndex:
    """The result of the check of an index.

    Args:
        receipt: Its receipt.
        old: Receipt of the index that it was compared with; None without one.
        touched: Rows whose scores must be expected to move; None if none were given.
    """

    receipt: Receipt
    old: Receipt | None
    findings: tuple[IndexFinding, ...]
    touched: TouchedRows | None = None

    @property
    def beyond(self) -> tuple[IndexFinding, ...]:
        """The findings beyond their limits."""
        return tuple(each for each in self.findings if each.is_beyond)

    @property
    def is_plain_rechunking(self) -> bool:
        """Whether the text is the same, in other chunks."""
        return {each.kind for each in self.findings} == {"chunking"}

    @property
    def sizes(self) -> tuple[tuple[int, int], ...]:
        """The numbers of documents and chunks, before and now."""
        return tuple((len(each.names), int(each.starts[-1])) for each in (self.old, self.receipt) if each is not None)


def check_index(request: CheckRequest) -> CheckedIndex:
    """Check an index.

    Raises:
        SourceError: Chunks or a receipt cannot be read.
        ConfigError: A limit is none of a finding, or rows are given without an index to compare with.
    """
    checks = [*open_checks()]
    check_limits(request.limits, (kind for check in checks for kind in check.kinds))
    if request.rows is not None and not request.old:
        raise ConfigError("which rows an index touches follows from a comparison: name an earlier one with --against")
    old = _read(request, request.old, ()) if request.old else None
    receipt = _read(request, request.new, checks)
    changes = IndexChanges(old or EMPTY, receipt)
    inner = [with_limit(each, request.limits) for check in checks for each in check.findings() if each.count]
    findings = (*find_changes(changes, request.limits), *inner)
    touched = None
    if request.rows is not None:
        is_receipt = find_receipt(request.new[0]) is not None
        chunks = None if is_receipt else (each.chunk for each in request.chunks(request.new))
        touched = find_touched(
            changes, request.rows, chunks, has_other_vectors=any(each.kind == "embedder" for each in findings)
        )
    return CheckedIndex(receipt, old, findings, touched)


def _read(request: CheckRequest, addresses: Sequence[str], checks: Iterable[IndexCheck]) -> Receipt:
    """Return the receipt at an address, or that of chunks, which the checks see too."""
    if len(addresses) == 1 and (receipt := find_receipt(addresses[0])) is not None:
        return receipt
    maker = ReceiptMaker()
    for each in request.chunks(addresses):
        maker.add(each)
        for check in checks:
            check.add(each)
    return maker.finish()


EMPTY = Receipt(
    IndexFacts((), {}, 1, 0, 0),
    (),
    {
        name: np.zeros(0, np.uint64)
        for name in ("plain", "content", "overlapping", "runs", "columns", "day", "permissions", "language")
    },
    np.zeros(1, np.int32),
    {name: np.zeros(0, np.uint64) for name in ("id", "text", "head", "tail", "length", "marks")},
)
"""The receipt of an index without chunks."""
