"""Check an index: read its chunks or its receipt, and compare it with an earlier one."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
import pyarrow as pa

from metric_core.errors import ConfigError
from tasks.index_receipt.index_changes import IndexChanges
from tasks.index_receipt.receipt import IndexFacts, Receipt, ReceiptMaker, find_receipt
from tasks.index_receipt.receipt_findings import check_limits, find_changes, with_limit
from tasks.index_receipt.touched_rows import TouchedRows, evidence_places, find_touched
from tasks.options.source_options import SourceOptions
from tasks.sources.anchoring.span_places import Chunk, SpanPlaces
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
        return {each.kind for each in self.faults} == {"chunking"}

    @property
    def faults(self) -> tuple[IndexFinding, ...]:
        """The findings with a case; the others only say how far a check went."""
        return tuple(each for each in self.findings if each.count)

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
    old = _find_receipt(request.old) or _make_receipt(request, request.old, (), None) if request.old else None
    receipt, places = _find_receipt(request.new), None
    if receipt is None:
        places = None if request.rows is None else evidence_places(request.rows())
        receipt = _make_receipt(request, request.new, checks, places)
    changes = IndexChanges(old or EMPTY, receipt)
    inner = [with_limit(each, request.limits) for check in checks for each in check.findings()]
    findings = (*find_changes(changes, request.limits), *inner)
    touched = None
    if request.rows is not None:
        has_other_vectors = any(each.kind == "embedder" for each in findings)
        touched = find_touched(changes, request.rows(), places, has_other_vectors=has_other_vectors)
    return CheckedIndex(receipt, old, findings, touched)


def _find_receipt(addresses: Sequence[str]) -> Receipt | None:
    return find_receipt(addresses[0]) if len(addresses) == 1 else None


def _make_receipt(
    request: CheckRequest, addresses: Sequence[str], checks: Iterable[IndexCheck], places: SpanPlaces | None
) -> Receipt:
    """Return the receipt of the chunks at addresses, which the checks and the places of evidence see too."""
    maker = ReceiptMaker()

    def read() -> Iterator[Chunk]:
        for each in request.chunks(addresses):
            maker.add(each)
            for check in checks:
                check.add(each)
            yield each.chunk

    if places is not None:
        places.read(read())
    else:
        deque(read(), maxlen=0)
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
