"""Read the chunks of an index from a file or folder of any format of a source."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from typing import Any

from metric_core.errors import SourceError
from tasks.sources.anchoring.span_places import Chunk
from tasks.sources.cells.evidence_values import DOCUMENT_KEYS, as_position
from tasks.sources.cells.ids import as_id
from tasks.sources.cells.passage_objects import TEXT_KEYS, as_passage
from tasks.sources.location import open_source
from tasks.sources.readers.bad_rows import BadRow, InvalidRowError
from tasks.sources.readers.protocol import Unreadable

_CHUNK_IDS = ("id", "chunk_id", "passage_id", "_id")
_DOCUMENTS = (*DOCUMENT_KEYS, "doc_id", "source")
_METADATA = "metadata"
_ROWS_AT_ONCE = 1000


def read_chunks(address: str, redact: Callable[[str], str] | None = None) -> Iterator[Chunk]:
    """Yield the chunks of an index in the order of the file, in which neighbours follow one another.

    Args:
        address: Path or URL of a table or JSON Lines with a text in each row and, as far as they are known, the id of
            the chunk, its document, and its place there (`start`, `end`), also below `metadata`.
        redact: Function that redacts texts and ids, as those of the rows are.

    Raises:
        SourceError: The file cannot be read, or a row has no text.
    """
    source = open_source(address)
    clean = redact or (lambda text: text)
    with closing(source.rows(_ROWS_AT_ONCE)) as rows:
        for row in rows:
            place = BadRow(row.number, None, "", source.unit, row.detail).place
            if isinstance(row.content, Unreadable):
                raise SourceError(f"{source.name}, {place}: {row.content.problem}")
            try:
                yield _chunk(row.content, clean)
            except InvalidRowError as invalid:
                raise SourceError(f"{source.name}, {place}: {invalid.problem}") from None


def text_id(text: str) -> str:
    """Return the id of a passage that has none: a digest of its text.

    >>> text_id("It rains.")
    'text-6f58a7623963538d'
    """
    return f"text-{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def _chunk(row: Mapping[str, Any], clean: Callable[[str], str]) -> Chunk:
    passage = as_passage(row)
    if passage is None or passage.text is None:
        raise InvalidRowError(f"no text of a chunk, wanted a column {' or '.join(TEXT_KEYS[:4])}")
    inner = row.get(_METADATA)
    fields = {**inner, **row} if isinstance(inner, Mapping) else row
    name, document = (_first(fields, names) for names in (_CHUNK_IDS, _DOCUMENTS))
    text = clean(passage.text)
    return Chunk(
        text_id(text) if name is None else clean(as_id(name, "the id of the chunk is")),
        text,
        None if document is None else clean(as_id(document, "the document of the chunk is")),
        as_position(fields.get("start"), "the start of the chunk is"),
        as_position(fields.get("end"), "the end of the chunk is"),
    )


def _first(fields: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((fields[name] for name in names if fields.get(name) not in (None, "")), None)
