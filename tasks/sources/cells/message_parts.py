"""Read the parts of a message's content: texts, calls of tools, and results of tools.

Known are the parts of OpenAI, Anthropic, Bedrock (Converse), Gemini, LangChain, OpenInference and OpenTelemetry.
"""

import json
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from tasks.runtime.wording import describe_value
from tasks.sources.readers.bad_rows import InvalidRowError


class PartKind(StrEnum):
    """Kind of a part."""

    TEXT = "text"
    CALL = "call"
    RESULT = "result"
    FILE = "file"
    """A picture, a sound or a document."""


class MessagePart(NamedTuple):
    """A part of a message.

    Args:
        text: Text, the call as `name(arguments)`, text of the result, or the type of a file.
        id: Id of the call, or of the call that a result belongs to; None if there is none.
    """

    kind: PartKind
    text: str
    id: str | None = None


_THOUGHTS = frozenset({"thinking", "redacted_thinking", "reasoning", "reasoning_content"})
_THOUGHT_KEYS = ("reasoningContent", "reasoning_content")
_CALLS = frozenset({"tool_use", "server_tool_use", "mcp_tool_use", "tool_call", "function_call"})
_CALL_KEYS = ("toolUse", "functionCall", "function_call", "tool_call", "toolCall", "function")
_RESULTS = frozenset({"tool_call_response", "function_call_output"})
_ITEMS = (*_THOUGHTS, *_CALLS, *_RESULTS)
_TEXTS = ("text", "input_text", "output_text")
_USE_PREFIX = "tool-"
_USES = ("dynamic-tool", "tool-invocation")
"""Types, beside those with the prefix before the name of the tool, of parts with a call and its result: of Vercel."""
_ASIDE = ("step-", "source-", "data-")
"""Prefixes of the types of parts that are not said to anyone."""
_RESULT_SUFFIX = "tool_result"
"""End of the types of results of Anthropic, such as `tool_result` and `web_search_tool_result`."""
_RESULT_KEYS = ("toolResult", "functionResponse", "function_response", "tool_call_result")
_RESULT_TEXTS = ("content", "result", "response", "output")
_ORIGIN = "origin"
"""Key of the call that a result of Haystack belongs to."""
_NAMES = ("name", "tool_name", "toolName")
_TEXT_KEYS = ("text", "refusal", "content")
_ARGUMENTS = ("arguments", "args", "input", "input_parameters", "inputParameters")
_TYPE_KEYS = ("type", "block_type")
_FILES = frozenset({"uri", "blob", "file", "media"})
"""Types of parts that say how a file is stored, rather than what it is."""
_STORED = frozenset({"uri", "blob"})
"""Types of parts whose content is the file itself, in base64, or its address."""
_MEDIA_KEYS = ("modality", "mime_type", "mimeType", "media_type")
_FILE_KEYS = ("inline_data", "inlineData", "file_data", "fileData", "image", "audio", "video", "document")
"""Keys under which Gemini and Bedrock have a file, in parts without a type."""
_UNTYPED = "file"
_IDS = ("tool_use_id", "toolUseId", "tool_call_id", "call_id", "id")
_WRAPPER = "message_content"
"""Key, or prefix of the keys, under which OpenInference has the fields of a part."""


def read_parts(content: Any) -> list[MessagePart]:
    """Return the parts of the content of a message. Thoughts of models are left out.

    >>> [part.text for part in read_parts([{"type": "text", "text": "Why?"}, {"type": "image_url"}])]
    ['Why?', 'image']
    >>> read_parts([{"type": "tool_use", "id": "t1", "name": "clock", "input": {"zone": "CET"}}])
    [MessagePart(kind=<PartKind.CALL: 'call'>, text='clock({"zone": "CET"})', id='t1')]
    >>> read_parts([{"toolResult": {"toolUseId": "t1", "content": [{"text": "Nine."}]}}])
    [MessagePart(kind=<PartKind.RESULT: 'result'>, text='Nine.', id='t1')]

    Raises:
        InvalidRowError: The content is neither a text nor a list of parts; the problem names the part, counted from 1.
    """
    if isinstance(content, str):
        return [MessagePart(PartKind.TEXT, content)]
    if isinstance(content, Mapping):
        content = [content]
    if not isinstance(content, list | tuple):
        raise InvalidRowError(f"its content is {describe_value(content)}, wanted a text or a list of parts")
    return [part for number, item in enumerate(content, start=1) for part in _read_part(item, number)]


def read_call(fields: Mapping[str, object]) -> MessagePart:
    """Return a call of a tool.

    >>> read_call({"type": "function", "function": {"name": "find", "arguments": '{"place": "shop"}'}}).text
    'find({"place": "shop"})'

    Raises:
        InvalidRowError: The call names no tool.
    """
    fields = without_prefixes(fields, "tool_call.", "function.")
    inner = next((fields[key] for key in _CALL_KEYS if isinstance(fields.get(key), Mapping)), None)
    if inner is not None:
        return read_call({**inner, **{key: fields[key] for key in _IDS if key in fields}})
    name = next((fields[key] for key in _NAMES if isinstance(fields.get(key), str) and fields[key]), None)
    if name is None:
        raise InvalidRowError("a tool call has no name")
    given = next((fields[key] for key in _ARGUMENTS if fields.get(key) is not None), "")
    return MessagePart(PartKind.CALL, f"{name}({given if isinstance(given, str) else _as_json(given)})", _id(fields))


def without_prefixes(fields: Mapping[Any, Any], *prefixes: str) -> dict[Any, Any]:
    """Return fields under their names without the first of these prefixes that they have.

    >>> without_prefixes({"message.role": "user"}, "message.")
    {'role': 'user'}
    """
    for prefix in prefixes:
        fields = {key.removeprefix(prefix) if isinstance(key, str) else key: value for key, value in fields.items()}
    return dict(fields)


def is_item(fields: Any) -> bool:
    """Return whether an object is a call, a result or a thought in the place of a message.

    >>> is_item({"type": "function_call", "name": "clock"}), is_item({"type": "text", "text": "Why?"})
    (True, False)
    """
    return isinstance(fields, Mapping) and "role" not in fields and fields.get("type") in _ITEMS


def is_part(item: Any) -> bool:
    """Return whether an object is a part of a message, rather than a message or a passage.

    >>> is_part({"type": "text", "text": "Why?"}), is_part({"type": "human", "content": "Why?"})
    (True, False)
    """
    return is_item(item) or (isinstance(item, Mapping) and item.get("type") in _TEXTS)


def _read_part(item: Any, number: int) -> Iterator[MessagePart]:
    if isinstance(item, str):
        yield MessagePart(PartKind.TEXT, item)
        return
    if not isinstance(item, Mapping):
        raise InvalidRowError(f"part {number} of its content is {describe_value(item)}, wanted a text or a typed part")
    fields = _unwrap(item)
    kind = next((fields[key] for key in _TYPE_KEYS if isinstance(fields.get(key), str)), "")
    result = next((fields[key] for key in _RESULT_KEYS if isinstance(fields.get(key), Mapping)), None)
    if (
        kind in _THOUGHTS
        or kind.startswith(_ASIDE)
        or fields.get("thought") is True
        or any(key in fields for key in _THOUGHT_KEYS)
    ):
        return
    if kind.startswith(_USE_PREFIX) or kind in _USES:
        yield from _read_use(fields, kind)
    elif (
        result is not None
        or kind in _RESULTS
        or kind.endswith(_RESULT_SUFFIX)
        or isinstance(fields.get(_ORIGIN), Mapping)
    ):
        fields = fields if result is None else result
        yield MessagePart(PartKind.RESULT, _result_text(fields), _id(fields))
    elif kind in _CALLS or "tool_name" in fields or any(isinstance(fields.get(key), Mapping) for key in _CALL_KEYS):
        yield read_call(fields)
    elif (text := _text(fields)) is not None and kind not in _STORED:
        yield MessagePart(PartKind.TEXT, text)
    elif kind:
        yield MessagePart(PartKind.FILE, _medium(fields, kind))
    elif (key := next((key for key in _FILE_KEYS if isinstance(fields.get(key), Mapping)), None)) is not None:
        yield MessagePart(PartKind.FILE, _medium(fields[key], key if key.isalpha() and key.islower() else _UNTYPED))
    else:
        raise InvalidRowError(f"part {number} of its content is {describe_value(item)}, wanted a text or a typed part")


def _read_use(fields: Mapping[str, object], kind: str) -> Iterator[MessagePart]:
    """Yield the call of a tool and, if it is there, its result, which are one part."""
    inner = fields.get("toolInvocation")
    fields = inner if isinstance(inner, Mapping) else fields
    yield read_call({"name": kind.removeprefix(_USE_PREFIX), **fields})
    result = next((fields[key] for key in ("output", "result") if fields.get(key) is not None), None)
    if result is not None:
        yield MessagePart(PartKind.RESULT, show_result(result))


def _unwrap(item: Mapping[str, object]) -> Mapping[str, Any]:
    if isinstance(inner := item.get(_WRAPPER), Mapping):
        return inner
    return without_prefixes(item, f"{_WRAPPER}.")


def _text(fields: Mapping[str, object]) -> str | None:
    for key in _TEXT_KEYS:
        value = fields.get(key)
        if isinstance(value, Mapping):
            value = value.get("value")  # of OpenAI's assistants
        if isinstance(value, str):
            return value
    return None


def _medium(fields: Mapping[str, object], kind: str) -> str:
    """Return what a file is, as far as its part says so: an image, not the URI of one.

    >>> _medium({"type": "uri", "modality": "image"}, "uri"), _medium({"mimeType": "application/pdf"}, "file")
    ('image', 'pdf')
    >>> _medium({"type": "input_image"}, "input_image"), _medium({"type": "image_url"}, "image_url")
    ('image', 'image')
    """
    said = next((fields[key] for key in _MEDIA_KEYS if isinstance(fields.get(key), str) and fields[key]), None)
    if said is None or kind not in _FILES:
        return kind.removeprefix("input_").removesuffix("_url")
    medium, _, form = str(said).partition("/")
    return form if medium == "application" and form else medium


def _result_text(fields: Mapping[str, object]) -> str:
    return show_result(next((fields[key] for key in _RESULT_TEXTS if fields.get(key) is not None), ""))


def show_result(value: Any) -> str:
    """Return the result of a tool as text: its text parts, else JSON.

    >>> show_result([{"type": "text", "text": "Nine."}]), show_result({"open": True})
    ('Nine.', '{"open": true}')
    """
    if isinstance(value, str):
        return value
    try:
        texts = [part.text for part in read_parts(value) if part.kind is PartKind.TEXT]
    except InvalidRowError:
        texts = []
    return "\n".join(texts) if texts else _as_json(value)


def _id(fields: Mapping[str, Any]) -> str | None:
    return next((fields[key] for key in _IDS if isinstance(fields.get(key), str)), None)


def _as_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
