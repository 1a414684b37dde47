"""Read the attributes of spans: OpenInference, the GenAI conventions of OpenTelemetry, and their earlier versions."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from tasks.sources.passage_objects import Passage
from tasks.sources.traces.payloads import (
    as_count,
    as_name,
    find_answer,
    find_earlier,
    find_passages,
    find_question,
    load,
    message_text,
    prompt_text,
    read_said,
)
from tasks.sources.traces.spans import Kind, Span

_KINDS = {
    **dict.fromkeys(("CHAIN", "AGENT", "invoke_agent", "invoke_workflow"), Kind.CHAIN),
    **dict.fromkeys(("LLM", "chat", "generate_content", "text_completion"), Kind.LLM),
    **dict.fromkeys(("RETRIEVER", "retrieval"), Kind.RETRIEVER),
    "RERANKER": Kind.RERANKER,
    **dict.fromkeys(("TOOL", "execute_tool"), Kind.TOOL),
    **dict.fromkeys(("EMBEDDING", "GUARDRAIL", "EVALUATOR", "PROMPT", "DECISION"), Kind.OTHER),
    **dict.fromkeys(("embeddings", "create_agent", "search_memory", "create_memory"), Kind.OTHER),
}
"""Value of `openinference.span.kind` or `gen_ai.operation.name` -> kind."""

_MESSAGES_IN = ("llm.input_messages", "gen_ai.input.messages", "gen_ai.prompt")
_MESSAGES_OUT = ("llm.output_messages", "gen_ai.output.messages", "gen_ai.completion")
_DOCUMENTS = ("retrieval.documents", "gen_ai.retrieval.documents")
_RERANKED = "reranker.output_documents"
_CANDIDATES = "reranker.input_documents"
_SESSIONS = ("session.id", "gen_ai.conversation.id")
_MODELS = ("llm.model_name", "gen_ai.response.model", "gen_ai.request.model")
_RESPONSE_ID = "gen_ai.response.id"
_PROMPT_TOKENS = ("llm.token_count.prompt", "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")
_OUTPUT_TOKENS = ("llm.token_count.completion", "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens")
_QUESTIONS = ("input.value", "gen_ai.retrieval.query.text", "reranker.query")
_TOOL_RESULTS = ("gen_ai.tool.call.result", "output.value")

_USED = frozenset(
    {
        *(*_MESSAGES_IN, *_MESSAGES_OUT, *_DOCUMENTS, _RERANKED, _CANDIDATES, *_SESSIONS, *_MODELS, *_PROMPT_TOKENS),
        *(*_OUTPUT_TOKENS, *_QUESTIONS, *_TOOL_RESULTS, "input.mime_type", "output.mime_type"),
        *("openinference.span.kind", "gen_ai.operation.name", "llm.invocation_parameters", "llm.tools"),
        *("gen_ai.system_instructions", "gen_ai.tool.definitions", "gen_ai.tool.call.arguments"),
    }
)
_USED_PREFIXES = (
    *(f"{name}." for name in (*_MESSAGES_IN, *_MESSAGES_OUT, *_DOCUMENTS, _RERANKED, _CANDIDATES)),
    "telemetry.",
)
_USER_EVENT = "gen_ai.user.message"
_CHOICE_EVENT = "gen_ai.choice"


class Event(NamedTuple):
    """An event of a span, or a log record that belongs to it.

    Args:
        name: Name of the event.
        content: Its attributes, and the fields of its body.
    """

    name: str
    content: Mapping[str, Any]


def fill_span(span: Span, attributes: Mapping[str, Any], events: Iterable[Event] = (), is_llm: bool = False) -> Span:
    """Fill in what the attributes and events of a span say, and return it.

    Args:
        span: Span with its ids, name and times.
        attributes: Attributes of the span, flat.
        events: Events of the span.
        is_llm: True if the form says elsewhere that a model answered.
    """
    found = {**_of_events(events), **{name: value for name, value in attributes.items() if value is not None}}
    said_in, said_out = _items(found, _MESSAGES_IN), _items(found, _MESSAGES_OUT)
    span.kind = _kind(found, said_in or said_out or is_llm)
    span.question = _question(found, said_in)
    span.earlier = find_earlier(found.get("input.value")) or find_earlier(said_in)
    span.answer = _answer(found, said_out, span.kind)
    if span.kind is Kind.LLM:
        span.prompt = prompt_text(said_in) if said_in else prompt_text(found.get("input.value"))
    _add_passages(span, found)
    if span.kind is Kind.TOOL and (result := _first(found, _TOOL_RESULTS)) is not None:
        span.tool_results = [result if isinstance(result, str) else str(result)]
    span.model = as_name(_first(found, _MODELS))
    span.prompt_tokens = as_count(_first(found, _PROMPT_TOKENS))
    span.output_tokens = as_count(_first(found, _OUTPUT_TOKENS))
    span.response_id = as_name(found.get(_RESPONSE_ID))
    span.session = as_name(_first(found, _SESSIONS))
    span.extras |= {
        name: load(value) if name == "metadata" else value
        for name, value in attributes.items()
        if value is not None and name not in _USED and not name.startswith(_USED_PREFIXES)
    }
    return span


def _kind(found: Mapping[str, Any], is_llm: Any) -> Kind:
    for name in ("openinference.span.kind", "gen_ai.operation.name"):
        if (kind := _KINDS.get(str(found.get(name)))) is not None:
            return kind
    if _items(found, _DOCUMENTS):
        return Kind.RETRIEVER
    return Kind.LLM if is_llm else Kind.CHAIN


def _question(found: Mapping[str, Any], messages: Sequence[Any]) -> str | None:
    for name in _QUESTIONS:
        if name in found:
            value = found[name]
            is_plain = name == "input.value" and found.get("input.mime_type") == "text/plain"
            if (question := value if is_plain and str(value).strip() else find_question(value)) is not None:
                return str(question)
    return find_question(messages) if messages else None


def _answer(found: Mapping[str, Any], messages: Sequence[Any], kind: Kind) -> str | None:
    if messages and (answer := find_answer(messages)) is not None:
        return answer
    if kind in (Kind.RETRIEVER, Kind.RERANKER) or "output.value" not in found:
        return None
    value = found["output.value"]
    is_plain = found.get("output.mime_type") == "text/plain" and isinstance(value, str) and value.strip()
    return value if is_plain else find_answer(value)


def _add_passages(span: Span, found: Mapping[str, Any]) -> None:
    if span.kind is Kind.RERANKER:
        span.passages = _passages(found, (_RERANKED, *_DOCUMENTS))
        span.candidates = _passages(found, (_CANDIDATES,))
    elif span.kind is Kind.RETRIEVER:
        span.passages = _passages(found, _DOCUMENTS)
        if span.passages is None:
            span.passages = find_passages(found.get("output.value"))


def _passages(found: Mapping[str, Any], names: Sequence[str]) -> list[Passage] | None:
    if not any(name in found or any(key.startswith(f"{name}.") for key in found) for name in names):
        return None
    return find_passages([_unwrap(item) for item in _items(found, names)])


def _unwrap(item: Any) -> Any:
    """Return a document of the nested form, `{"document": {"content": ...}}`, under the names of the flat one."""
    inner = item.get("document") if isinstance(item, Mapping) else None
    return {f"document.{key}": value for key, value in inner.items()} if isinstance(inner, Mapping) else item


def _items(found: Mapping[str, Any], names: Sequence[str]) -> list[Any]:
    """Return the items of the first list attribute there is: a list, its JSON, or one attribute per field of an item.

    >>> _items({"retrieval.documents.10.document.id": "b", "retrieval.documents.9.document.id": "a"}, _DOCUMENTS)
    [{'document.id': 'a'}, {'document.id': 'b'}]
    """
    for name in names:
        value = load(found.get(name))
        if isinstance(value, Sequence) and not isinstance(value, str) and len(value):
            return list(value)
        if isinstance(value, str) and value:
            return [{"role": "user" if name in _MESSAGES_IN else "assistant", "content": value}]
        items: dict[int, dict[str, Any]] = {}
        place = re.compile(rf"{re.escape(name)}\.(\d+)\.(.+)")
        for key, inner in found.items():
            if (match := place.fullmatch(key)) is not None:
                items.setdefault(int(match[1]), {})[match[2]] = inner
        if items:
            return [items[number] for number in sorted(items)]
    return []


def _first(found: Mapping[str, Any], names: Iterable[str]) -> Any:
    return next((found[name] for name in names if found.get(name) not in (None, "")), None)


def _of_events(events: Iterable[Event]) -> dict[str, Any]:
    """Return as attributes what events say about the messages of a model."""
    found: dict[str, Any] = {}
    asked: list[dict[str, Any]] = []
    for event in events:
        found |= {name: event.content[name] for name in (*_MESSAGES_IN, *_MESSAGES_OUT) if event.content.get(name)}
        if event.name.startswith("gen_ai.") and event.name.endswith(".message"):
            role = "user" if event.name == _USER_EVENT else event.name.split(".")[1]
            asked.append({"role": role, "content": message_text(event.content)})
        if event.name == _CHOICE_EVENT:
            message = load(event.content.get("message"))
            text = message_text(message) if isinstance(message, Mapping) else str(message or "")
            found.setdefault("gen_ai.output.messages", [{"role": "assistant", "content": text}])
    if asked:
        found.setdefault("gen_ai.input.messages", asked)
    return found


def has_messages(value: Any) -> bool:
    """Return whether a value is a list of messages."""
    return bool(read_said(load(value)))
