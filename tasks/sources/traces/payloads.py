"""Find questions, answers and passages in what spans recorded as their inputs and outputs."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from tasks.sources.bad_rows import UnfitError
from tasks.sources.passage_objects import Passage, as_passage
from tasks.sources.text_cells import parse_cell
from tasks.sources.traces.spans import Said

_ROLES = {
    **dict.fromkeys(("user", "human", "humanmessage"), "user"),
    **dict.fromkeys(("assistant", "ai", "model", "aimessage", "aimessagechunk"), "assistant"),
    **dict.fromkeys(("tool", "function", "toolmessage"), "tool"),
}
_CONTENT_KEYS = (
    *("content", "parts", "contents", "tool_calls"),
    *("message.content", "message.contents", "message.tool_calls"),
)
_QUESTION_KEYS = (
    "question",
    "query",
    "user_input",
    "input",
    "inputs",
    "prompt",
    "text",
    "content",
    "message",
    "kwargs",
    "args",
)
_ANSWER_KEYS = (
    *("answer", "response", "output", "outputs", "result", "text", "content", "output_text", "generated_text"),
    *("completion", "message", "choices", "generations", "return_values"),
)
_MESSAGES_KEYS = ("messages", "chat_history")
_PASSAGES_KEYS = (
    "documents",
    "docs",
    "source_documents",
    "context",
    "contexts",
    "passages",
    "nodes",
    "output",
    "outputs",
    "results",
)
_DEEPEST = 6


def load(value: Any) -> Any:
    """Return what a text with JSON or a Python literal holds; any other value unchanged.

    >>> load('{"question": "Why?"}'), load("Why?")
    ({'question': 'Why?'}, 'Why?')
    """
    if not isinstance(value, str):
        return value
    try:
        return parse_cell(value)
    except UnfitError:
        return value


def find_question(value: Any) -> str | None:
    """Return the question in an input: a text, the last message of a user, or a usual key of an object.

    >>> find_question({"question": "Why?", "k": 3}), find_question('[{"role": "user", "content": "Why?"}]')
    ('Why?', 'Why?')
    >>> find_question({"city": "Paris", "days": 3}) is None
    True
    """
    loaded = load(value)
    if messages := read_said(loaded):
        return next((said.text for said in reversed(messages) if said.role == "user" and said.text.strip()), None)
    found = _find_text(loaded, _QUESTION_KEYS, find_question)
    return _nonblank(value) if found is None and isinstance(value, str) else found


def find_earlier(value: Any) -> list[Said]:
    """Return what the user and the assistant said before the last question of an input that is a conversation.

    >>> [said.text for said in find_earlier([["user", "Hi!"], ["assistant", "Hello."], ["user", "Why?"]])]
    ['Hi!', 'Hello.']
    """
    loaded = load(value)
    if isinstance(loaded, Mapping):
        loaded = next((load(loaded[key]) for key in _MESSAGES_KEYS if key in loaded), None)
    messages = read_said(loaded)
    asked = [place for place, said in enumerate(messages) if said.role == "user" and said.text.strip()]
    earlier = messages[: asked[-1]] if asked else []
    return [said for said in earlier if said.role in ("user", "assistant") and said.text.strip()]


def find_answer(value: Any) -> str | None:
    """Return the answer in an output: a text, the last message of an assistant, or a usual key of an object.

    >>> find_answer({"answer": "So.", "docs": []}), find_answer({"choices": [{"message": {"content": "So."}}]})
    ('So.', 'So.')
    """
    loaded = load(value)
    if messages := read_said(loaded):
        return next((said.text for said in reversed(messages) if said.role == "assistant" and said.text.strip()), None)
    found = _find_text(loaded, _ANSWER_KEYS, find_answer)
    return _nonblank(value) if found is None and isinstance(value, str) else found


def _find_text(value: Any, keys: Sequence[str], find: Callable[[Any], str | None]) -> str | None:
    if isinstance(value, str):
        return _nonblank(value)
    if isinstance(value, list | tuple):
        # A list of one: positional arguments, choices of a model, generations of a batch.
        return find(value[0]) if len(value) == 1 else None
    if not isinstance(value, Mapping):
        return None
    for key in _MESSAGES_KEYS:
        if (messages := read_said(load(value.get(key)))) and (text := find(messages_as_dicts(messages))):
            return text
    for key in keys:
        inner = value.get(key)
        if inner not in (None, "", [], {}) and (text := find(inner)) is not None:
            return text
    texts = [inner for inner in value.values() if isinstance(inner, str) and inner.strip()]
    return texts[0] if len(value) == len(texts) == 1 else None


def messages_as_dicts(messages: Iterable[Said]) -> list[dict[str, str]]:
    """Return messages as a chat API takes them."""
    return [{"role": said.role, "content": said.text} for said in messages]


def read_said(value: Any) -> list[Said]:
    """Return the messages of a list, in the forms of OpenAI, LangChain, OpenInference and OpenTelemetry; else none.

    >>> read_said([{"role": "user", "parts": [{"type": "text", "content": "Why?"}]}])
    [Said(role='user', text='Why?')]
    >>> read_said([[{"lc": 1, "id": ["langchain", "HumanMessage"], "kwargs": {"content": "Why?"}}]])
    [Said(role='user', text='Why?')]
    """
    if isinstance(value, list | tuple) and len(value) == 1 and isinstance(value[0], list | tuple):
        value = value[0]
    if not isinstance(value, list | tuple) or not value:
        return []
    found = [_said(item) for item in value]
    return [said for said in found if said is not None] if all(said is not None for said in found) else []


def _said(item: Any) -> Said | None:
    if isinstance(item, list | tuple) and len(item) == 2 and all(isinstance(part, str) for part in item):
        item = {"role": item[0], "content": item[1]}
    if not isinstance(item, Mapping):
        return None
    inner = next((item[key] for key in ("message", "kwargs", "data") if isinstance(item.get(key), Mapping)), None)
    fields = {**item, **(inner or {})}
    role = next((fields[key] for key in ("role", "message.role", "type") if isinstance(fields.get(key), str)), None)
    if role in (None, "constructor", "not_implemented") and isinstance(item.get("id"), list) and item["id"]:
        role = str(item["id"][-1])
    if role is None:
        return None
    has_content = any(name == key or name.startswith(f"{key}.") for key in _CONTENT_KEYS for name in fields)
    return Said(_ROLES.get(role.casefold(), role.casefold()), message_text(fields)) if has_content else None


def message_text(fields: Mapping[str, Any]) -> str:
    """Return the text of a message: its content, or the text parts of it."""
    for key in ("content", "message.content", "parts", "contents", "message.contents"):
        if text := _content_text(load(fields[key]) if key == "parts" else fields.get(key)) if key in fields else "":
            return text
    flat = [(name, value) for name, value in fields.items() if name.endswith("message_content.text")]
    return "\n".join(str(value) for _, value in sorted(flat))


def _content_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        content = [content]
    if not isinstance(content, list | tuple):
        return ""
    return "\n".join(filter(None, map(_part_text, content)))


def _part_text(part: Any) -> str:
    if isinstance(part, str):
        return part
    if not isinstance(part, Mapping):
        return ""
    part = part["message_content"] if isinstance(part.get("message_content"), Mapping) else part
    if part.get("type") in ("tool_call", "thinking", "reasoning"):
        return ""
    for key in ("text", "content", "message_content.text", "response", "result"):
        if isinstance(part.get(key), str):
            return str(part[key])
    return ""


def prompt_text(value: Any) -> str | None:
    """Return all text in an input of a model, to find passages in it."""
    loaded = load(value)
    if messages := read_said(loaded):
        return "\n".join(said.text for said in messages)
    texts = list(_texts(loaded, _DEEPEST))
    return "\n".join(texts) or None


def _texts(value: Any, depth: int) -> Iterable[str]:
    if isinstance(value, str):
        yield value
    elif depth and isinstance(value, Mapping):
        for inner in value.values():
            yield from _texts(inner, depth - 1)
    elif depth and isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner, depth - 1)


def find_passages(value: Any) -> list[Passage] | None:
    """Return the passages in an output of a retriever; None if there are none to recognize.

    >>> find_passages({"documents": [{"page_content": "Rain.", "metadata": {"source": "a.md"}}]})
    [Passage(text='Rain.', id='a.md', score=None)]
    >>> find_passages([{"document.id": "a", "document.score": 0.5}]), find_passages("Rain.") is None
    ([Passage(text=None, id='a', score=0.5)], True)
    """
    loaded = load(value)
    if isinstance(loaded, Mapping):
        for key in _PASSAGES_KEYS:
            if key in loaded and (found := find_passages(loaded[key])) is not None:
                return found
        return None
    if not isinstance(loaded, list | tuple):
        return None
    passages = [as_passage(_with_metadata(_scored(item))) for item in loaded]
    return [passage for passage in passages if passage is not None] if all(passages) else None


def _scored(item: Any) -> Any:
    """Return a passage of a pair of passage and score as LangChain returns it."""
    if isinstance(item, list | tuple) and len(item) == 2 and isinstance(item[0], Mapping):
        return {**item[0], "score": item[1]}
    return item


def _with_metadata(item: Any) -> Any:
    """Return a passage with its metadata as an object; OpenInference writes them as JSON."""
    if not isinstance(item, Mapping):
        return item
    fields = item["kwargs"] if isinstance(item.get("kwargs"), Mapping) and "page_content" in item["kwargs"] else item
    return {key: load(value) if key in ("metadata", "document.metadata") else value for key, value in fields.items()}


def as_seconds(value: Any) -> float | None:
    """Return a time as seconds since 1970: from ISO 8601, of UTC without an offset, or a date and time.

    >>> as_seconds("2024-05-29 13:46:19.963000") == as_seconds("2024-05-29T13:46:19.963Z")
    True
    """
    if isinstance(value, str) and value:
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if not isinstance(value, datetime):
        return None
    return (value if value.tzinfo is not None else value.replace(tzinfo=UTC)).timestamp()


def as_count(value: Any) -> int | None:
    """Return a number of tokens, which some exports write as text or with a fraction.

    >>> as_count("12"), as_count(12.0), as_count("many") is None
    (12, 12, True)
    """
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return int(number) if math.isfinite(number) and not isinstance(value, bool) else None


def as_name(value: Any) -> str | None:
    """Return an id or a name as text; None for a missing or empty one."""
    if isinstance(value, float) and math.isnan(value):
        return None
    return None if value is None or value == "" else str(value)


def _nonblank(text: str) -> str | None:
    return text if text.strip() else None
