"""Read the chunks of an index: a row per chunk, or rows with the passages that a retriever returned."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import Any

from metric_core.columns import RETRIEVED_CONTEXT_IDS, RETRIEVED_CONTEXTS
from metric_core.errors import SourceError
from metric_core.index_questions.written_question import digest_text
from tasks.options.source_options import SourceOptions
from tasks.runtime.wording import quote_names
from tasks.sources.cells.passage_objects import TEXT_KEYS, as_passage
from tasks.sources.cells.text_cells import parse_cell
from tasks.sources.column_mapping import check_mapped, resolve_columns
from tasks.sources.location import open_source
from tasks.sources.nested_columns import with_paths
from tasks.sources.readers.protocol import Unreadable
from tasks.sources.redaction import Redaction

DOCUMENT_KEYS = ("document", "document_id", "doc_id", "source", "file_name", "file", "path", "url")
START_KEYS = ("start", "start_index", "start_char_idx", "offset")
TITLE_KEYS = ("title", "heading", "section")
"""Keys of a chunk, or of its metadata, in order of precedence."""
_METADATA = "metadata"
_SHOWN = 40


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk of an index.

    Args:
        document: Id of its document: given, else what its id has before a number sign, else its id; None without both.
        start: Position of its first character in the document; None if it is not known.
        title: Title of its section; None if it is not known.
        digest: Digest of its text.
    """

    text: str
    digest: str
    document: str | None = None
    start: int | None = None
    title: str | None = None

    @property
    def source(self) -> str:
        """The document, or the beginning of a chunk whose document is not known."""
        return self.document if self.document is not None else f"{self.text[:_SHOWN].strip()}..."

    def is_beside(self, other: "Chunk") -> bool:
        """Return whether two chunks are known to be of the same document."""
        return self.document is not None and self.document == other.document


def read_chunks(source: str, options: SourceOptions) -> list[Chunk]:
    """Return the chunks of an index, each text once, in the order of the source.

    A row is a chunk, with its text under `text`, `content` or `page_content`; a row with `retrieved_contexts` (or a
    column mapped to it) has several, as texts or as objects.

    Raises:
        SourceError: The source cannot be read, a row has no text, or there is no row.
    """
    rows = with_paths(open_source(source), options)
    redaction = None if options.redact is None else Redaction(options.redact)
    chunks: dict[str, Chunk] = {}
    checked = False
    with closing(rows.rows(options.batch_rows)) as numbered:
        for row in islice(numbered, options.limit):
            place = f"{rows.name}, {rows.where(row.number)}"
            if isinstance(row.content, Unreadable):
                raise SourceError(f"{place}: {row.content.problem}")
            if not checked:
                check_mapped(row.content, rows, options)
                checked = True
            content = row.content if redaction is None else redaction.row(row.content)
            for chunk in _chunks_of(content, options.column_map, place):
                if chunk.text.strip():
                    chunks.setdefault(chunk.digest, chunk)
    if not chunks:
        raise SourceError(f"{rows.name} has no chunks with a text")
    return list(chunks.values())


def _chunks_of(content: Mapping[str, Any], column_map: Mapping[str, str], place: str) -> Iterator[Chunk]:
    bound = resolve_columns(content, column_map).bindings
    if RETRIEVED_CONTEXTS not in bound:
        yield _chunk(content, None, place)
        return
    value = content[bound[RETRIEVED_CONTEXTS]]
    value = parse_cell(value) if isinstance(value, str) else value
    ids = content.get(bound.get(RETRIEVED_CONTEXT_IDS, ""))
    ids = parse_cell(ids) if isinstance(ids, str) else ids
    if isinstance(value, str):  # a chunk per row, whose text has another name
        name = ids if isinstance(ids, str) else None
        yield _chunk({**content, TEXT_KEYS[0]: value}, name, place)
        return
    passages: Sequence[Any] = value if isinstance(value, list | tuple) else ()
    names = ids if isinstance(ids, list | tuple) and len(ids) == len(passages) else [None] * len(passages)
    for passage, name in zip(passages, names, strict=True):
        yield _chunk(passage, None if name is None else str(name), place)


def _chunk(item: Any, name: str | None, place: str) -> Chunk:
    """Return the chunk in a text or an object.

    Args:
        name: Id of the chunk, if it is not in the object.
    """
    passage = as_passage(item)
    if passage is None or passage.text is None:
        raise SourceError(
            f"{place}: no text of a chunk under {quote_names(TEXT_KEYS[:4])}; it has: "
            f"{quote_names(item if isinstance(item, Mapping) else ())}. If another column holds it, map it: "
            f"--column-map NAME={RETRIEVED_CONTEXTS}"
        )
    fields: dict[str, Any] = {}
    if isinstance(item, Mapping):
        metadata = item.get(_METADATA)
        fields = {**(metadata if isinstance(metadata, Mapping) else {}), **item}
    start, digest = _first(fields, START_KEYS, int), digest_text(passage.text)
    document = _first(fields, DOCUMENT_KEYS, str) or _first(fields, DOCUMENT_KEYS, int)
    if document is None:
        chunk_id = name or passage.id or ""
        document = chunk_id.partition("#")[0] or chunk_id or None
    title = _first(fields, TITLE_KEYS, str)
    return Chunk(passage.text, digest, None if document is None else str(document), start, title)


def _first(fields: Mapping[str, Any], keys: Sequence[str], kind: type) -> Any:
    values = (fields.get(key) for key in keys)
    return next((value for value in values if isinstance(value, kind) and value != "" and value is not True), None)
