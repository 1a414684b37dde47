"""Read the attributes of spans: OpenInference, the GenAI conventions of OpenTelemetry, and their earlier versions."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from tasks.sources.cells.passage_objects import RetrievedPassage
from tasks.sources.traces.passage_lists import find_passages
from tasks.sources.traces.payloads import find_answer, find_asked, prompt_text, read_said
from tasks.sources.traces.spans import Kind, Span
from tasks.sources.traces.steps import fill_step
from tasks.sources.traces.values import as_count, as_name, parse_literal

_KINDS = {
    **dict.fromkeys(("CHAIN", "AGENT", "invoke_agent", "invoke_workflow"), Kind.CHAIN),
    **dict.fromkeys(("LLM", "chat", "generate_content", "text_completion"), Kind.LLM),
    **dict.fromkeys(("RETRIEVER", "retrieval"), Kind.RETRIEVER),
    "RERANKER": Kind.RERANKER,
    **dict.fromkeys(("TOOL", "execute_tool"), Kind.TOOL),
    **dict.fromkeys(("EMBEDDING", "GUARDRAIL", "EVALUATOR", "PROMPT", "DECISION"), Kind.OTHER),
    **dict.fromkeys(("embeddings", "create_agent", "search_memory", "create_memory"), Kind.OTHER),
    **dict.fromkeys(("span", "chain", "agent"), Kind.CHAIN),
    "generation": Kind.LLM,
    "retriever": Kind.RETRIEVER,
    "tool": Kind.TOOL,
    **dict.fromkeys(("event", "embedding", "evaluator", "guardrail"), Kind.OTHER),
}
"""Value of an attribute in `_KIND_NAMES` -> kind."""
_KIND_NAMES = ("openinference.span.kind", "gen_ai.operation.name", "langfuse.observation.type")

_COMPONENT = "haystack.component.type"
_COMPONENT_KINDS = {
    "Generator": Kind.LLM,
    "Retriever": Kind.RETRIEVER,
    "Ranker": Kind.RERANKER,
    **dict.fromkeys(("PromptBuilder", "Embedder", "Evaluator"), Kind.OTHER),
}
"""End of the class of a component of Haystack -> kind."""

_MESSAGES_IN = ("llm.input_messages", "gen_ai.input.messages", "gen_ai.prompt")
_MESSAGES_OUT = ("llm.output_messages", "gen_ai.output.messages", "gen_ai.completion")
_DOCUMENTS = ("retrieval.documents", "gen_ai.retrieval.documents")
_RERANKED = "reranker.output_documents"
_CANDIDATES = "reranker.input_documents"
_SESSIONS = ("session.id", "gen_ai.conversation.id", "langfuse.session.id")
_MODELS = ("llm.model_name", "gen_ai.response.model", "gen_ai.request.model", "langfuse.observation.model.name")
_RESPONSE_ID = "gen_ai.response.id"
_PROMPT_TOKENS = ("llm.token_count.prompt", "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")
_OUTPUT_TOKENS = ("llm.token_count.completion", "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens")
_INPUTS = (
    *("input.value", "langfuse.observation.input", "gen_ai.retrieval.query.text", "reranker.query"),
    *("haystack.component.input", "haystack.pipeline.input_data"),
)
_OUTPUTS = (
    *("output.value", "langfuse.observation.output", "gen_ai.tool.call.result"),
    *("haystack.component.output", "haystack.pipeline.output_data"),
)
TEXTS = frozenset({*_INPUTS, *_OUTPUTS})
"""Attributes whose value is a text, even if it is one of JSON."""

_USED = frozenset(
    {
        *(*_MESSAGES_IN, *_MESSAGES_OUT, *_DOCUMENTS, _RERANKED, _CANDIDATES, *_SESSIONS, *_MODELS, *_PROMPT_TOKENS),
        *(*_OUTPUT_TOKENS, *_INPUTS, *_OUTPUTS, "input.mime_type", "output.mime_type"),
        *(*_KIND_NAMES, "llm.invocation_parameters", "llm.tools"),
        *("gen_ai.system_instructions", "gen_ai.tool.definitions", "gen_ai.tool.call.arguments"),
    }
)
_USED_PREFIXES = (
    *(f"{name}." for name in (*_MESSAGES_IN, *_MESSAGES_OUT, *_DOCUMENTS, _RERANKED, _CANDIDATES)),
    *("telemetry.", "haystack.component.", "haystack.pipeline."),
)
_NUMBERED = re.compile(r"(.+?)\.(\d+)\.(.+)")
"""Name of a field of an item in a list."""
_USER_EVENT = "gen_ai.user.message"
_CHOICE_EVENT = "gen_ai.choice"


class Event(NamedTuple):
    """An event of a span, or a log record that belongs to it.

    Args:
        content: Its attributes, and the fields of its body.
    """

    name: str
    content: Mapping[str, Any]


def fill_span(span: Span, attributes: Mapping[str, object], events: Iterable[Event] = (), is_llm: bool = False) -> Span:
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
    fill_step(span, _first(found, _INPUTS), _first(found, _OUTPUTS))
    if said_in and (span.kind is Kind.LLM or span.question is None):
        span.question, span.earlier = find_asked(said_in)
    if span.question is None:
        asked = (find_asked(found[name]).question for name in _INPUTS if name in found)
        span.question = next((question for question in asked if question is not None), None)
    if read_said(said_out) is not None and span.kind in (Kind.LLM, Kind.CHAIN):
        span.answer = find_answer(said_out)
    if span.kind is Kind.LLM and said_in:
        span.prompt = prompt_text(said_in)
    _keep_plain(span, found)
    _add_passages(span, found)
    span.model = as_name(_first(found, _MODELS))
    span.prompt_tokens = as_count(_first(found, _PROMPT_TOKENS))
    span.output_tokens = as_count(_first(found, _OUTPUT_TOKENS))
    span.response_id = as_name(found.get(_RESPONSE_ID))
    span.session = as_name(_first(found, _SESSIONS))
    span.extras |= {
        name: parse_literal(value) if name == "metadata" else value
        for name, value in attributes.items()
        if value is not None and name not in _USED and not name.startswith(_USED_PREFIXES)
    }
    return span


def _kind(found: Mapping[str, object], is_llm: Any) -> Kind:
    for name in _KIND_NAMES:
        if (kind := _KINDS.get(str(found.get(name)))) is not None:
            return kind
    component = str(found.get(_COMPONENT))
    if (end := next((end for end in _COMPONENT_KINDS if component.endswith(end)), None)) is not None:
        return _COMPONENT_KINDS[end]
    if _items(found, _DOCUMENTS):
        return Kind.RETRIEVER
    return Kind.LLM if is_llm else Kind.CHAIN


def _keep_plain(span: Span, found: Mapping[str, object]) -> None:
    """Take what is recorded as plain text as it is, even if it is JSON."""
    texts = {}
    for side in ("input", "output"):
        value = found.get(f"{side}.value")
        if found.get(f"{side}.mime_type") == "text/plain" and isinstance(value, str) and value.strip():
            texts[side] = value
    span.question = texts.get("input", span.question)
    if span.kind in (Kind.CHAIN, Kind.LLM) and span.answer is not None:
        span.answer = texts.get("output", span.answer)


def _add_passages(span: Span, found: Mapping[str, object]) -> None:
    if span.kind is Kind.RERANKER:
        span.passages = _first_found(_passages(found, (_RERANKED, *_DOCUMENTS)), span.passages)
        span.candidates = _first_found(_passages(found, (_CANDIDATES,)), span.candidates)
    elif span.kind is Kind.RETRIEVER:
        span.passages = _first_found(_passages(found, _DOCUMENTS), span.passages)
    # A retriever that found nothing has no attributes for passages, and need not have an output.
    span.is_unread = span.is_unread and span.passages is None and "output.value" in found


def _first_found(*passages: list[RetrievedPassage] | None) -> list[RetrievedPassage] | None:
    return next((each for each in passages if each is not None), None)


def _passages(found: Mapping[str, object], names: Sequence[str]) -> list[RetrievedPassage] | None:
    if not any(name in found or any(key.startswith(f"{name}.") for key in found) for name in names):
        return None
    return find_passages([_unwrap(item) for item in _items(found, names)])


def _unwrap(item: Any) -> Any:
    """Return a document of the nested form, `{"document": {"content": ...}}`, under the names of the flat one."""
    inner = item.get("document") if isinstance(item, Mapping) else None
    return {f"document.{key}": value for key, value in inner.items()} if isinstance(inner, Mapping) else item


def _items(found: Mapping[str, object], names: Sequence[str]) -> list[Any]:
    """Return the items of the first list attribute there is: a list, its JSON, or one attribute per field of an item.

    >>> _items({"retrieval.documents.10.document.id": "b", "retrieval.documents.9.document.id": "a"}, _DOCUMENTS)
    [{'document.id': 'a'}, {'document.id': 'b'}]
    """
    for name in names:
        value = parse_literal(found.get(name))
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
            return [_nest(items[number]) for number in sorted(items)]
    return []


def _nest(fields: Mapping[str, object]) -> dict[str, Any]:
    """Return the fields of an item with its lists, such as the parts of a message, as lists.

    >>> _nest({"message.contents.0.message_content.text": "Why?"})
    {'message.contents': [{'message_content.text': 'Why?'}]}
    """
    nested: dict[str, Any] = {}
    lists: dict[str, dict[int, dict[str, Any]]] = {}
    for key, value in fields.items():
        if (match := _NUMBERED.fullmatch(key)) is None:
            nested[key] = value
        else:
            lists.setdefault(match[1], {}).setdefault(int(match[2]), {})[match[3]] = value
    return nested | {key: [_nest(items[number]) for number in sorted(items)] for key, items in lists.items()}


def _first(found: Mapping[str, object], names: Iterable[str]) -> Any:
    return next((found[name] for name in names if found.get(name) not in (None, "")), None)


def _of_events(events: Iterable[Event]) -> dict[str, Any]:
    """Return as attributes what events say about the messages of a model."""
    found: dict[str, Any] = {}
    asked: list[dict[str, Any]] = []
    for event in events:
        found |= {name: event.content[name] for name in (*_MESSAGES_IN, *_MESSAGES_OUT) if event.content.get(name)}
        if event.name.startswith("gen_ai.") and event.name.endswith(".message"):
            role = "user" if event.name == _USER_EVENT else event.name.split(".")[1]
            asked.append({"role": role, **event.content})
        if event.name == _CHOICE_EVENT:
            message = parse_literal(event.content.get("message"))
            message = message if isinstance(message, Mapping) else {"content": str(message or "")}
            found.setdefault("gen_ai.output.messages", [{"role": "assistant", **message}])
    if asked:
        found.setdefault("gen_ai.input.messages", asked)
    return found
