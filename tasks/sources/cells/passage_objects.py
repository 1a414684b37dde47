"""Read passages that are objects of a retrieval framework: texts with ids and scores."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from metric_core.columns import (
    REFERENCE_CONTEXT_IDS,
    REFERENCE_CONTEXTS,
    RETRIEVED_CONTEXT_ACL,
    RETRIEVED_CONTEXT_DATES,
    RETRIEVED_CONTEXT_IDS,
    RETRIEVED_CONTEXT_SCORES,
    RETRIEVED_CONTEXTS,
)
from metric_core.records import finite_number
from tasks.runtime.wording import describe_value
from tasks.sources.cells.text_cells import parse_cell
from tasks.sources.readers.bad_rows import InvalidRowError

TEXT_KEYS = ("page_content", "pageContent", "text", "content", "document.content", "text_resource")
ID_KEYS = ("id", "document.id", "id_", "_id", "doc_id", "document_id", "chunk_id")
SCORE_KEYS = ("score", "document.score", "_score", "@search.score", "relevance_score", "similarity")
DATE_KEYS = ("date", "updated", "updated_at", "last_modified", "modified_at", "published_at", "version")
ACL_KEYS = ("acl",)
_INNER_KEYS = ("document", "node", "payload", "properties", "_source")
"""Keys of objects that hold the passage beside its score: of frameworks, Qdrant, Weaviate and Elasticsearch."""
_SERIALIZED = ("lc", "kwargs")
"""Keys of an object that LangChain serialized; its own fields are under the second."""
_METADATA_KEYS = ("metadata", "document.metadata", "meta")
_SURE_KEYS = frozenset({"page_content", "pageContent", *_METADATA_KEYS, *ID_KEYS, *SCORE_KEYS, *_INNER_KEYS, "kwargs"})
"""Keys that only a passage has: an object with one of them is a passage; others may have a text, too."""
_KNOWN_KEYS = frozenset({*TEXT_KEYS, *_SURE_KEYS, *_SERIALIZED, "type"})
_INNER_TEXT = "text"
"""Key of the text in a text that is an object, as in Bedrock's knowledge bases and the nodes of LlamaIndex."""

COMPANIONS: Mapping[str, tuple[str, str | None]] = {
    RETRIEVED_CONTEXTS: (RETRIEVED_CONTEXT_IDS, RETRIEVED_CONTEXT_SCORES),
    REFERENCE_CONTEXTS: (REFERENCE_CONTEXT_IDS, None),
}
"""Column of passages -> the columns of their ids and scores."""


@dataclass(frozen=True, slots=True)
class RetrievedPassage:
    """A passage as a retriever returned it.

    Args:
        text: Text; None if only the id is known.
        id: Identifier in the index; None if it is not known.
        score: Score that the retriever gave it; None if it is not known.
        date: Its date or version; None if it is not known.
        acl: The names of those who may see it, as the object has them; None if it does not say.
    """

    text: str | None
    id: str | None = None
    score: float | None = None
    date: str | None = field(default=None, repr=False)
    acl: Any = field(default=None, repr=False)


def read_passages(value: Any) -> list[RetrievedPassage] | None:
    """Return the passages of a list with objects; None for any other value, such as a list of texts.

    >>> read_passages([{"page_content": "Rain.", "metadata": {"source": "kb/rain.md"}, "score": 0.5}])
    [RetrievedPassage(text='Rain.', id='kb/rain.md', score=0.5)]

    Raises:
        InvalidRowError: An object has no text.
    """
    if not isinstance(value, list | tuple):
        return None
    value = parse_documents(value)
    if not any(isinstance(item, Mapping) for item in value):
        return None
    passages = []
    for number, item in enumerate(value, start=1):
        passage = as_passage(item)
        if passage is None or passage.text is None:
            raise InvalidRowError(
                f"item {number} is {describe_value(item)}, wanted a text, or an object with a text under "
                "'page_content', 'text' or 'content'"
            )
        passages.append(passage)
    return passages


def parse_documents(items: Sequence[Any]) -> Sequence[Any]:
    """Return the documents that a list has as texts, each as JSON or as Python prints it; any other list as it is.

    Texts with keys that are none of a document's are records, which a passage may well be.

    >>> parse_documents(['{"page_content": "Rain.", "metadata": {}}', "page_content='Snow.' metadata={}"])
    [{'page_content': 'Rain.', 'metadata': {}}, {'page_content': 'Snow.', 'metadata': {}}]
    >>> parse_documents(['{"city": "Delft", "text": "Rain."}', "Snow."])
    ['{"city": "Delft", "text": "Rain."}', 'Snow.']
    """
    if not items or not all(isinstance(item, str) for item in items):
        return items
    parsed = [*takewhile(_is_document, map(_parse, items))]  # of a list of plain texts, only the first is parsed
    return parsed if len(parsed) == len(items) else items


def _parse(text: str) -> Any:
    try:
        return parse_cell(text)
    except InvalidRowError:
        return text


def _is_document(item: Any) -> bool:
    if not isinstance(item, Mapping) or not item.keys() & _SURE_KEYS or not item.keys() <= _KNOWN_KEYS:
        return False
    passage = as_passage(item)
    return passage is not None and passage.text is not None


def as_passage(item: Any) -> RetrievedPassage | None:
    """Return the passage in an object or a text; None if it is neither, or the object holds nothing of a passage.

    >>> as_passage({"node": {"id_": 7, "text": "Rain."}, "score": 0.5}), as_passage({"id": "a"}), as_passage({"x": 1})
    (RetrievedPassage(text='Rain.', id='7', score=0.5), RetrievedPassage(text=None, id='a', score=None), None)
    """
    if isinstance(item, str):
        return RetrievedPassage(item)
    if not isinstance(item, Mapping):
        return None
    fields = _own_fields(item)
    text = text_of(fields)
    if text is None:
        text = text_of(_first_object(fields, _METADATA_KEYS))  # which holds the text in Pinecone
    name = _name(fields)
    if text is None and name is None:
        return None
    score = next((score for key in SCORE_KEYS if (score := _number(fields.get(key))) is not None), None)
    own = flat_fields(item)
    date = next((str(own[key]) for key in DATE_KEYS if isinstance(own.get(key), str | int | float)), None)
    acl = next((own[key] for key in ACL_KEYS if own.get(key) is not None), None)
    return RetrievedPassage(text, name, score, date, acl)


def flat_fields(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of the object of a passage, with those of the objects in it that hold the passage or say more.

    >>> flat_fields({"id": 7, "payload": {"text": "Rain.", "metadata": {"source": "rain.md"}}})
    {'source': 'rain.md', 'text': 'Rain.', 'id': 7}
    """
    fields = _own_fields(item)
    metadata = _first_object(fields, _METADATA_KEYS)
    if not metadata:
        return fields
    return {**metadata, **{key: each for key, each in fields.items() if each is not metadata}}


def text_of(fields: Mapping[str, Any]) -> str | None:
    """Return the text among the fields of a passage; None without one."""
    for key in TEXT_KEYS:
        if key in fields and (text := _text(fields[key])) is not None:
            return text
    return None


def companions(column: str, passages: Sequence[RetrievedPassage]) -> dict[str, Any]:
    """Return the ids, scores, dates and permissions of passages by their columns, as far as the passages have them.

    Ids are given only if every passage has one, and so are the dates of retrieved ones; scores and permissions if any
    has.
    """
    ids, scores = COMPANIONS[column]
    values: dict[str, Any] = {}
    if passages and all(passage.id is not None for passage in passages):
        values[ids] = [passage.id for passage in passages]
    if scores is not None and any(passage.score is not None for passage in passages):
        values[scores] = [passage.score for passage in passages]
    if column == RETRIEVED_CONTEXTS and passages and all(passage.date is not None for passage in passages):
        values[RETRIEVED_CONTEXT_DATES] = [passage.date for passage in passages]
    if column == RETRIEVED_CONTEXTS and any(passage.acl is not None for passage in passages):
        values[RETRIEVED_CONTEXT_ACL] = [passage.acl for passage in passages]
    return values


def find_companions(column: str, value: Any) -> Iterable[str]:
    """Return the columns of ids and scores that passages bring along; none for passages that are plain texts.

    >>> sorted(find_companions("retrieved_contexts", [{"text": "Rain.", "id": 7, "score": 0.5}]))
    ['retrieved_context_ids', 'retrieved_context_scores']
    """
    try:
        passages = read_passages(parse_cell(value) if isinstance(value, str) else value)
    except InvalidRowError:
        return ()
    return companions(column, passages or ())


def _own_fields(item: Mapping[str, Any]) -> Mapping[str, Any]:
    mark, own = _SERIALIZED
    item = item[own] if mark in item and isinstance(item.get(own), Mapping) else item
    if item.keys().isdisjoint(_INNER_KEYS):
        return item
    inner = _first_object(item, _INNER_KEYS)
    outer = {key: each for key, each in item.items() if key not in _INNER_KEYS or not isinstance(each, Mapping)}
    return {**inner, **outer}


def _text(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    inner = value.get(_INNER_TEXT) if isinstance(value, Mapping) else None
    return inner if isinstance(inner, str) else None


def _name(fields: Mapping[str, object]) -> str | None:
    metadata = _first_object(fields, _METADATA_KEYS)
    for value in (*(fields.get(key) for key in ID_KEYS), metadata.get("source")):
        if isinstance(value, str) and value:
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
    return None


def _first_object(fields: Mapping[str, Any], keys: Iterable[str]) -> Mapping[str, Any]:
    for key in keys:
        if key in fields and isinstance(value := fields[key], Mapping):
            return value
    return {}


def _number(value: Any) -> float | None:
    return finite_number(value) if isinstance(value, int | float) else None
