"""Read the chunks of an index from a file or folder of any format of a source."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from itertools import islice
from typing import Any

from metric_core.columns import RETRIEVED_CONTEXT_IDS, RETRIEVED_CONTEXTS
from metric_core.errors import SourceError
from metric_core.evidence_spans import digest_text
from tasks.options.source_options import SourceOptions
from tasks.runtime.wording import quote_names
from tasks.sources.anchoring.span_places import Chunk
from tasks.sources.cells.evidence_values import DOCUMENT_KEYS, as_position
from tasks.sources.cells.ids import as_id
from tasks.sources.cells.passage_objects import TEXT_KEYS, flat_fields, text_of
from tasks.sources.cells.text_cells import parse_cell
from tasks.sources.column_mapping import check_mapped, resolve_columns
from tasks.sources.location import open_source
from tasks.sources.nested_columns import with_paths
from tasks.sources.readers.bad_rows import BadRow, InvalidRowError
from tasks.sources.readers.protocol import Unreadable

_CHUNK_IDS = ("id", "chunk_id", "passage_id", "_id", "id_")
_DOCUMENTS = (*DOCUMENT_KEYS, "doc_id", "source", "file_name", "path", "url")
_STARTS, _ENDS = ("start", "start_index", "start_char_idx"), ("end", "end_index", "end_char_idx")
_TITLES = ("title", "heading", "section")
_ROWS_AT_ONCE = 8192
_OF_DOCUMENT = "#"
"""Sign before which the id of a chunk names its document, as in `travel.md#hotels`."""


@dataclass(frozen=True, slots=True)
class IndexChunk:
    """A chunk of an index with everything that the index holds of it.

    Args:
        fields: Its columns by name, with those of its metadata or payload among them.
    """

    chunk: Chunk
    fields: Mapping[str, Any]


def read_chunks(
    address: str, redact: Callable[[str], str] | None = None, options: SourceOptions | None = None
) -> Iterator[Chunk]:
    """Yield the chunks of an index in the order of the file, in which neighbours follow one another.

    Args:
        address: Path or URL of a table or JSON Lines with a text in each row and, as far as they are known, the id of
            the chunk, its document, its place there (`start`, `end`) and its title, also below `metadata`. A row with
            retrieved contexts has a chunk in each of them, as texts or as objects.
        redact: Function that redacts texts and ids, as those of the rows are.
        options: Names of columns (a column of texts may be mapped to `retrieved_contexts`), and the number of rows.

    Raises:
        SourceError: The file cannot be read, a row has no text, or two chunks with different texts have the same id.
    """
    texts: dict[str, bytes] = {}
    check = lambda chunk: _check_id(chunk, texts)  # noqa: E731
    for each in read_index(address, redact, options, check):
        yield each.chunk


def read_index(
    address: str,
    redact: Callable[[str], str] | None = None,
    options: SourceOptions | None = None,
    check: Callable[[Chunk], None] | None = None,
) -> Iterator[IndexChunk]:
    """Yield the chunks of an index as `read_chunks` does, with their other columns.

    Args:
        check: Function that refuses a chunk by an InvalidRowError; without it, a chunk may have the id of another one,
            and one whose text is missing is empty.
    """
    options = options or SourceOptions()
    source = with_paths(open_source(address), options)
    clean = redact or (lambda text: text)
    bindings = cache(lambda names: resolve_columns(names, options.column_map).bindings)
    with closing(source.rows(_ROWS_AT_ONCE)) as rows:
        for number, row in enumerate(islice(rows, options.limit)):
            place = BadRow(row.number, None, "", source.unit, row.detail).place
            if isinstance(row.content, Unreadable):
                raise SourceError(f"{source.name}, {place}: {row.content.problem}")
            if number == 0:
                check_mapped(row.content, source, options)
            try:
                for item in _items(row.content, bindings(tuple(row.content))):
                    found = _chunk(item, clean, may_lack_text=check is None)
                    if check is not None:
                        check(found.chunk)
                    yield found
            except InvalidRowError as invalid:
                raise SourceError(f"{source.name}, {place}: {invalid.problem}") from None


def text_id(text: str) -> str:
    """Return the id of a passage that has none: a digest of its text.

    >>> text_id("It rains.")
    'text-6f58a7623963538d'
    """
    return f"text-{digest_text(text)}"


def digest_chunks(digests: Iterable[str]) -> str:
    """Return the digest of an index: that of the texts of its chunks, in any order, each counted once.

    Args:
        digests: Digests of the chunks that have a text.

    >>> digest_chunks(["b", "a"]) == digest_chunks(["a", "b", "a"])
    True
    """
    return digest_text("\n".join(sorted({*digests})))[:8]


def _check_id(chunk: Chunk, texts: dict[str, bytes]) -> None:
    """Refuse a chunk with the id of another one.

    Args:
        texts: Digests of the texts of the chunks before it, by id; that of the chunk is added.
    """
    digest = blake2b(chunk.text.encode(errors="surrogatepass"), digest_size=8).digest()
    if texts.setdefault(chunk.id, digest) != digest:
        raise InvalidRowError(
            f"another chunk with another text has the id {chunk.id!r}, too; each chunk needs an id of its own, in a "
            f"column {' or '.join(_CHUNK_IDS[:2])}"
        )


def _items(row: Mapping[str, object], bound: Mapping[str, str]) -> Iterator[Any]:
    """Yield the objects and texts of the chunks in a row.

    Args:
        bound: Columns of a sample -> columns of the row.
    """
    if RETRIEVED_CONTEXTS not in bound:
        yield row
        return
    value = _parsed(row[bound[RETRIEVED_CONTEXTS]])
    if isinstance(value, str):
        yield {**row, TEXT_KEYS[0]: value}
        return
    passages = value if isinstance(value, list | tuple) else ()
    ids = _parsed(row.get(bound.get(RETRIEVED_CONTEXT_IDS, "")))
    is_named = isinstance(ids, list | tuple) and len(ids) == len(passages)
    for place, passage in enumerate(passages):
        item = {TEXT_KEYS[0]: passage} if isinstance(passage, str) else passage
        yield {_CHUNK_IDS[0]: ids[place], **item} if is_named and isinstance(item, Mapping) else item


def _parsed(value: Any) -> Any:
    return parse_cell(value) if isinstance(value, str) else value


def _chunk(row: Any, clean: Callable[[str], str], *, may_lack_text: bool) -> IndexChunk:
    fields = flat_fields(row) if isinstance(row, Mapping) else {}
    text = row if isinstance(row, str) else text_of(fields)
    if text is None and may_lack_text and not fields.keys().isdisjoint(TEXT_KEYS):
        text = ""
    if text is None:
        raise InvalidRowError(
            f"no text of a chunk, wanted a column {' or '.join(TEXT_KEYS[:4])}; it has: "
            f"{quote_names(row if isinstance(row, Mapping) else ())}. If another one holds it, map it: "
            f"--column-map NAME={RETRIEVED_CONTEXTS}"
        )
    name, document, start, end = (_first(fields, names) for names in (_CHUNK_IDS, _DOCUMENTS, _STARTS, _ENDS))
    text, title = clean(text), _first(fields, _TITLES)
    chunk_id = text_id(text) if name is None else clean(as_id(name, "the id of the chunk is"))
    if document is None and _OF_DOCUMENT in chunk_id:
        document = chunk_id.partition(_OF_DOCUMENT)[0] or None
    chunk = Chunk(
        chunk_id,
        text,
        None if document is None else clean(as_id(document, "the document of the chunk is")),
        as_position(start, "the start of the chunk is"),
        as_position(end, "the end of the chunk is"),
        clean(title) if isinstance(title, str) else None,
    )
    return IndexChunk(chunk, fields)


def _first(fields: Mapping[str, object], names: tuple[str, ...]) -> Any:
    for name in names:
        if name in fields and (value := fields[name]) is not None and value != "":
            return value
    return None
