"""Find passages in what retrievers and rerankers recorded as their outputs."""

import re
from collections.abc import Collection, Mapping
from typing import Any

from tasks.sources.cells.message_parts import is_part
from tasks.sources.cells.messages import is_message
from tasks.sources.cells.passage_objects import RetrievedPassage, as_passage, parse_documents
from tasks.sources.traces.values import decode_text, is_unread_object, parse_literal

PASSAGES_KEYS = (
    *("documents", "docs", "source_documents", "context", "contexts", "passages", "nodes", "source_nodes"),
    *("retrievalResults", "matches", "points", "hits", "objects", "value", "chunks", "retrieved_documents"),
)
_OUTPUT_KEYS = ("output", "outputs", "results")
_DOCUMENT_KEYS = frozenset({"page_content", "pageContent", "metadata", "meta", "document", "node", "document.content"})
_ITEM_KEYS = frozenset({"id", "id_", "score", "document.id", *_DOCUMENT_KEYS})
_DOCUMENT = re.compile(r"\w*(?:Document|Node)\w*\(")
"""Start of what Python prints of a document."""
_REPLY_KEYS = frozenset({"role", "finish_reason", "stop_reason", "logprobs", "generation_info", "model", "usage"})
"""Keys of what a model generated, which also has an id and a text."""


def find_passages(value: Any) -> list[RetrievedPassage] | None:
    """Return the passages in an output of a retriever; None if there are none to recognize.

    >>> find_passages({"documents": [{"page_content": "Rain.", "metadata": {"source": "a.md"}}]})
    [RetrievedPassage(text='Rain.', id='a.md', score=None)]
    >>> find_passages([{"document.id": "a", "document.score": 0.5}]), find_passages("Rain.") is None
    ([RetrievedPassage(text=None, id='a', score=0.5)], True)
    """
    loaded = parse_literal(value)
    if isinstance(loaded, Mapping):
        if (columns := _find_columns(loaded)) is not None:
            return columns
        for key in (*PASSAGES_KEYS, *_OUTPUT_KEYS):
            if key in loaded and (found := find_passages(loaded[key])) is not None:
                return found
        return None
    if not isinstance(loaded, list | tuple):
        return None
    if any(isinstance(item, str) and is_unread_object(item) for item in loaded):
        return None
    items = parse_documents(list(map(decode_text, loaded)))
    passages = [as_passage(_with_metadata(_scored(item))) for item in items]
    return [passage for passage in passages if passage is not None] if all(passages) else None


def _find_columns(value: Mapping[str, object]) -> list[RetrievedPassage] | None:
    """Return passages whose ids and texts are lists beside each other, as Chroma returns them for each query.

    >>> _find_columns({"ids": [["a"]], "documents": [["Rain."]], "distances": [[0.5]]})
    [RetrievedPassage(text='Rain.', id='a', score=None)]
    """
    ids, texts = (_only_list(value.get(key)) for key in ("ids", "documents"))
    is_pair = isinstance(ids, list) and isinstance(texts, list) and len(ids) == len(texts)
    if not is_pair or not all(isinstance(each, str) for each in (*ids, *texts)):
        return None
    return [RetrievedPassage(text, name) for name, text in zip(ids, texts, strict=True)]


def _only_list(value: Any) -> Any:
    return value[0] if isinstance(value, list) and len(value) == 1 and isinstance(value[0], list) else value


def are_documents(value: Any, *, or_texts: bool = False) -> bool:
    """Return whether an output is nothing but documents: objects that each have a text and something beside it.

    Args:
        value: Output of a step.
        or_texts: True if texts count as documents, too.

    >>> are_documents([{"page_content": "Rain.", "metadata": {}}]), are_documents([{"type": "text", "text": "So."}])
    (True, False)
    >>> are_documents({"documents": [{"content": "Rain.", "score": 0.5}]}), are_documents(["Rain."])
    (True, False)
    """
    loaded = parse_literal(value)
    if isinstance(loaded, Mapping) and len(loaded) == 1:
        ((key, inner),) = loaded.items()
        return key in (*PASSAGES_KEYS, *_OUTPUT_KEYS) and are_documents(inner, or_texts=or_texts)
    if not isinstance(loaded, list | tuple) or not loaded:
        return False
    loaded = parse_documents(loaded)
    return all((or_texts and isinstance(item, str)) or is_document(_scored(item), _ITEM_KEYS) for item in loaded)


def hold_documents(value: Any, depth: int = 3) -> bool:
    """Return whether an input or output holds documents, readable or not, as a step that builds an index gets them.

    >>> hold_documents({"nodes": ["<Document(id_=a)>"], "show_progress": False}), hold_documents({"city": "Paris"})
    (True, False)
    >>> hold_documents({"data": {"writer": {"documents": ["Document(id=a, content: 'Rain.')"]}}})
    True
    """
    loaded = parse_literal(value)
    if isinstance(loaded, Mapping):
        return depth > 0 and any(hold_documents(inner, depth - 1) for inner in loaded.values())
    if not isinstance(loaded, list | tuple) or not loaded:
        return False
    return are_documents(loaded) or all(isinstance(item, str) and _shows_document(item) for item in loaded)


def _shows_document(text: str) -> bool:
    return is_unread_object(text) or _DOCUMENT.match(text) is not None


def is_document(item: Any, keys: Collection[str] = _DOCUMENT_KEYS) -> bool:
    """Return whether an object is a passage: it has a text, and one of these keys beside it."""
    if not isinstance(item, Mapping) or is_part(item) or is_message(item):
        return False
    fields = item["kwargs"] if "lc" in item and isinstance(item.get("kwargs"), Mapping) else item
    if _REPLY_KEYS & fields.keys() or not fields.keys() & keys:
        return False
    passage = as_passage(_with_metadata(item))
    return passage is not None and passage.text is not None


def _scored(item: Any) -> Any:
    """Return a passage of a pair of passage and score as LangChain returns it."""
    if isinstance(item, list | tuple) and len(item) == 2 and isinstance(item[0], Mapping):
        return {**item[0], "score": item[1]}
    return item


def _with_metadata(item: Any) -> Any:
    """Return a passage with its metadata as an object; OpenInference writes them as JSON."""
    if not isinstance(item, Mapping):
        return item
    return {
        key: parse_literal(value) if key in ("metadata", "document.metadata") else value for key, value in item.items()
    }
