"""Define the receipt of an index, a small file of digests and counts, and make one of its chunks."""

import json
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from metric_core.errors import SourceError
from tasks.index_receipt.chunk_marks import (
    Mark,
    count_overlap,
    count_short_overlap,
    digest,
    find_roles,
    is_of_chunk,
    mark_text,
    split_pieces,
    without_rules,
)
from tasks.models.recognizers.detection import detect_language
from tasks.runtime.atomic_files import output_file
from tasks.sources.chunk_file import IndexChunk
from tasks.sources.location import open_file

_KEY = b"rag-assay.index-receipt"
_TYPES = {
    "id": np.uint64,
    "text": np.uint64,
    "head": np.uint32,
    "tail": np.uint32,
    "length": np.uint32,
    "marks": np.uint8,
}
"""Columns of the chunks: digests of their ids and texts, checksums of their edges, lengths, and marks."""
_REPEATED = int(Mark.REPEATED)
_MOST_READ = 4096
"""Documents whose language is detected at most."""
_SHOWN = 400
_MOST_COLUMNS = 64
_NOTHING: tuple[Any, ...] = ("", [])


@dataclass(frozen=True, slots=True)
class IndexFacts:
    """Counts of an index as a whole.

    Args:
        columns: Columns besides the text, in the order of the bits of a document's `columns`.
        embedders: Models and dimensions of vectors -> number of chunks.
        one_in: The language of one in so many documents was detected.
        overlap: Bytes at the beginnings of chunks that repeat the end of the one before, without blanks.
        bytes: Bytes of all chunks, without blanks.
    """

    columns: Sequence[str]
    embedders: Mapping[str, int]
    one_in: int
    overlap: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Receipt:
    """The receipt of an index. Its chunks are in the order of the documents.

    Args:
        names: Names of the documents.
        documents: Columns of the documents by name: digests of their text (`plain` of all chunks in their
            order, `content` of its pieces, `overlapping` of those of chunks with short overlaps), the `runs` of chunks
            in which they come, the bits of their `columns` with a value,
            their `day`, `permissions` and `language`.
        starts: Place of the first chunk of each document, and the number of all chunks.
        chunks: Columns of the chunks by name.
    """

    facts: IndexFacts
    names: tuple[str, ...]
    documents: Mapping[str, np.ndarray]
    starts: np.ndarray
    chunks: Mapping[str, np.ndarray]

    @property
    def owners(self) -> np.ndarray:
        """The place of the document of each chunk."""
        return np.repeat(np.arange(len(self.names)), np.diff(self.starts))

    def write(self, path: Path) -> None:
        """Write the receipt to a file."""
        columns: dict[str, Any] = {"name": pa.array(self.names, pa.string()), **self.documents}
        for name, values in self.chunks.items():
            columns[name] = pa.ListArray.from_arrays(pa.array(self.starts, pa.int32()), pa.array(values))
        facts = {name: getattr(self.facts, name) for name in IndexFacts.__slots__}
        table = pa.table(columns).replace_schema_metadata({_KEY: json.dumps(facts).encode()})
        with output_file(path, "the receipt") as temporary:
            pq.write_table(table, temporary, compression="zstd")


def find_receipt(address: str) -> Receipt | None:
    """Return the receipt at an address; None if something else is there.

    Raises:
        SourceError: The file cannot be read.
    """
    with open_file(address).open() as file:
        start = file.read(4)
        if start != b"PAR1":
            return None
        content = start + file.read()
    try:
        metadata = pq.read_schema(pa.BufferReader(content)).metadata or {}
        if _KEY not in metadata:
            return None
        table = pq.read_table(pa.BufferReader(content)).combine_chunks()
        facts = IndexFacts(**json.loads(metadata[_KEY]))
        starts = table[next(iter(_TYPES))].chunk(0).offsets.to_numpy() if len(table) else np.zeros(1, np.int32)
        chunks = {name: table[name].combine_chunks().flatten().to_numpy() for name in _TYPES}
        documents = {
            name: table[name].to_numpy() for name in table.column_names if name != "name" and name not in _TYPES
        }
    except (pa.ArrowException, ValueError, TypeError, KeyError) as error:
        raise SourceError(f"{address} is no receipt that can be read: {error}") from error
    return Receipt(facts, tuple(table["name"].to_pylist()), documents, starts, chunks)


class _Open:
    """The document whose chunks follow one another at the moment.

    Its text is known by its pieces between punctuation marks, each counted once: they are the same however the text is
    cut, and whether or not chunks overlap. A piece that a border of chunks cuts is joined again.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        self.plain = blake2b(digest_size=8)
        self.has_news = False
        self._pieces: list[bytes] = []
        self._doubtful: list[tuple[bytes, bytes]] = []
        self._first = self._before = self._last = b""

    def add(self, encoded: bytes, *, is_repeated: bool) -> int:
        """Add a squeezed text, and return how many bytes of it repeat the one before."""
        self.plain.update(encoded)
        self.has_news |= not is_repeated
        encoded = without_rules(encoded)
        if encoded == self._first:  # the document again
            self._pieces.append(self._last)
            self._before = self._last = b""
        self._first = self._first or encoded
        overlap = count_overlap(self._before, encoded)
        pieces = split_pieces(encoded)
        if overlap <= len(pieces[0]):
            short = 0 if overlap else count_short_overlap(self._before, encoded)
            if short and len(pieces) > 1:
                other = self._last + pieces[0][short:] if short <= len(pieces[0]) else b""
                self._doubtful.append((self._last + pieces[0], other))
            pieces[0] = self._last + pieces[0][overlap:]
        elif len(pieces) > 1:  # both parts are in the other text as a whole
            pieces[0] = b""
        self._before, self._last = encoded, pieces.pop()
        self._pieces += pieces
        return overlap

    @property
    def contents(self) -> tuple[int, int]:
        """The digests of its pieces, without and with overlaps that are so short that they may be chance."""
        pieces = Counter((*self._pieces, self._last))
        first = _sum_pieces(pieces)
        if not self._doubtful:
            return first, first
        others = pieces - Counter(piece for piece, _ in self._doubtful)
        return first, _sum_pieces({*others, *(piece for _, piece in self._doubtful)})


def _sum_pieces(pieces: Iterable[bytes]) -> int:
    """Return a digest of pieces in any order."""
    found = np.array([*map(crc32, pieces)], np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    found ^= found >> np.uint64(29)
    found *= np.uint64(0xBF58476D1CE4E5B9)
    return int(found.sum(dtype=np.uint64))


class ReceiptMaker:
    """Makes the receipt of an index of its chunks, one after the other."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._owner = array("I")
        self._chunks = {name: array(code) for name, code in zip(_TYPES, "QQIIIB", strict=True)}
        self._digests = {name: array("Q") for name in ("plain", "content", "overlapping")}
        self._runs, self._day, self._filled = array("H"), array("d"), array("Q")
        self._permissions: dict[int, set[str]] = {}
        self._beginnings: dict[int, str] = {}
        self._one_in = 1
        self._seen: set[int] = set()
        self._open: _Open | None = None
        self._columns: dict[str, int] = {}
        self._embedders: Counter[str] = Counter()
        self._overlap = self._bytes = 0

    def add(self, each: IndexChunk) -> None:
        """Add the next chunk."""
        chunk, fields = each.chunk, each.fields
        name = chunk.id if chunk.document is None else chunk.document
        number = self._numbers.get(name)
        if number is None:
            number = self._begin(name, chunk.text)
        if self._open is None or self._open.number != number:
            self._close()
            self._open = _Open(number)
        marks = mark_text(chunk.text)
        key = marks.digest ^ (number * 0x9E3779B97F4A7C15 & 0xFFFFFFFFFFFFFFFF)
        is_repeated = key in self._seen
        self._seen.add(key)
        flags = marks.marks | _REPEATED if is_repeated and marks.encoded else marks.marks
        values = (digest(chunk.id.encode("utf-8", "surrogatepass")), marks.digest, marks.head, marks.tail)
        for held, value in zip(self._chunks.values(), (*values, len(chunk.text), flags), strict=True):
            held.append(value)
        self._owner.append(number)
        self._bytes += len(marks.encoded)
        self._join(self._open, marks.encoded, is_repeated=is_repeated)
        self._read_fields(number, fields)

    def _begin(self, name: str, text: str) -> int:
        number = self._numbers[name] = len(self._numbers)
        self._day.append(0.0)
        for held in (*self._digests.values(), self._runs, self._filled):
            held.append(0)
        if is_read(name, self._one_in):
            self._beginnings[number] = text[:_SHOWN]
            if len(self._beginnings) > _MOST_READ:  # fewer of them, the same in each version of the index
                self._one_in *= 2
                names = list(self._numbers)
                kept = (each for each in self._beginnings if is_read(names[each], self._one_in))
                self._beginnings = {each: self._beginnings[each] for each in kept}
        return number

    def _join(self, document: _Open, encoded: bytes, *, is_repeated: bool) -> None:
        if encoded:
            self._overlap += document.add(encoded, is_repeated=is_repeated)

    def _close(self) -> None:
        """Keep the digests of the document whose chunks came last: the sum of those of all its runs of chunks."""
        if (document := self._open) is None or not document.has_news:
            return
        plain = int.from_bytes(document.plain.digest(), "little")
        for held, found in zip(self._digests.values(), (plain, *document.contents), strict=True):
            held[document.number] = (held[document.number] + found) & 0xFFFFFFFFFFFFFFFF
        self._runs[document.number] = min(self._runs[document.number] + 1, 0xFFFF)

    def _read_fields(self, number: int, fields: Mapping[str, Any]) -> None:
        columns, bits = self._columns, 0
        for name, value in fields.items():
            if value is not None and value not in _NOTHING:
                bits |= columns[name] if name in columns else self._add_column(name)
        self._filled[number] |= bits
        roles = find_roles(tuple(fields))
        if roles.embedders or roles.vectors:
            self._embedders.update(roles.read_embedder(fields))
        if roles.days:
            self._day[number] = max(self._day[number], roles.read_day(fields))
        if roles.permissions and (permissions := roles.read_permissions(fields)):
            self._permissions.setdefault(number, set()).update(permissions)

    def _add_column(self, name: str) -> int:
        """Return the bit of a new column; 0 for one that says nothing of a document, or if there are too many."""
        bit = (
            0
            if is_of_chunk(name) or len(self._columns) >= _MOST_COLUMNS
            else 1 << sum(map(bool, self._columns.values()))
        )
        self._columns[name] = bit
        return bit

    def finish(self) -> Receipt:
        """Return the receipt."""
        self._close()
        self._open = None
        count = len(self._numbers)
        owner = np.frombuffer(self._owner, np.uint32) if self._owner else np.zeros(0, np.uint32)
        order = np.argsort(owner, kind="stable")
        starts = np.concatenate(([0], np.cumsum(np.bincount(owner, minlength=count)))).astype(np.int32)
        chunks = {name: np.array(held, _TYPES[name])[order] for name, held in self._chunks.items()}
        languages = {number: detect_language([text]) for number, text in self._beginnings.items()}
        documents: dict[str, np.ndarray] = {
            **{name: np.array(held, np.uint64) for name, held in self._digests.items()},
            "runs": np.array(self._runs, np.uint16),
            "columns": np.array(self._filled, np.uint64),
            "day": np.array(self._day, np.float64),
            "permissions": _words(count, {each: "\n".join(sorted(of)) for each, of in self._permissions.items()}),
            "language": _words(count, languages),
        }
        columns = [name for name, bit in self._columns.items() if bit]
        facts = IndexFacts(columns, dict(self._embedders), self._one_in, self._overlap, self._bytes)
        return Receipt(facts, tuple(self._numbers), documents, starts, chunks)


def is_read(name: str, one_in: int) -> bool:
    """Return whether the language of a document is detected if that of one in so many is."""
    return crc32(name.encode("utf-8", "surrogatepass")) % one_in == 0


def _words(count: int, found: Mapping[int, str]) -> np.ndarray:
    """Return a column of texts, empty where nothing was found."""
    column = np.full(count, "", dtype=object)
    for number, text in found.items():
        column[number] = text
    return column


def make_receipt(chunks: Iterable[IndexChunk]) -> Receipt:
    """Return the receipt of an index."""
    maker = ReceiptMaker()
    for each in chunks:
        maker.add(each)
    return maker.finish()
