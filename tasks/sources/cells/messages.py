"""Read the messages of a conversation in the forms that chat APIs and frameworks write, and show them as text.

Known are the form of OpenAI (role and content, which is a text or a list of parts, with tool_calls and messages of the
role tool), the one of Ragas and LangChain (type and content, also as LangChain serializes its objects), role and parts
(Gemini, OpenTelemetry), the attributes of OpenInference, and speaker or from with text or value. Calls and results of
tools may be parts of the content.
"""

import ast
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tasks.runtime.wording import describe_value
from tasks.sources.cells.message_parts import (
    MessagePart,
    PartKind,
    is_item,
    read_call,
    read_parts,
    show_result,
    without_prefixes,
)
from tasks.sources.readers.bad_rows import InvalidRowError


class Role(StrEnum):
    """Speaker of a message."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


_ROLES = {
    **dict.fromkeys(("system", "developer"), Role.SYSTEM),
    **dict.fromkeys(("user", "human"), Role.USER),
    **dict.fromkeys(("assistant", "ai", "agent", "bot", "gpt", "model"), Role.ASSISTANT),
    **dict.fromkeys(("tool", "function"), Role.TOOL),
}
_SPEAKER_KEYS = ("role", "type", "from", "speaker")
_TEXT_KEYS = ("content", "parts", "contents", "blocks", "text", "value", "message")
_LIKELY_COLUMNS = frozenset(
    {"messages", "conversation", "conversations", "turns", "dialogue", "dialog", "chat_history", "history"}
)
_CALL_KEYS = ("tool_calls", "function_call", "tool_call", "toolCalls", "tools_called", "toolsCalled")
_RESULT_KEYS = ("tool_result", "tool_results", "tool_output", "tool_outputs")
"""Keys of results of tools beside the content of a message."""
_OUTPUT_OF_CALL = "output"
"""Key of the result in a call, as DeepEval keeps them."""
MESSAGE_KEYS = frozenset({*_SPEAKER_KEYS, *_TEXT_KEYS, *_CALL_KEYS, *_RESULT_KEYS})
"""Fields of a message that are read as its speaker, its text, and its calls and results of tools."""
_WITH_MESSAGE = ("data", "kwargs", "message")
"""Keys under which exports of LangChain and replies of OpenAI nest a message."""
_PREFIX = "message."
"""Prefix of the names that OpenInference gives the fields of a message."""
_CLASS_ENDS = ("messagechunk", "message")
"""Ends of the names of LangChain's classes of messages."""
_SERIALIZED = ("constructor", "not_implemented")
"""Types of objects that LangChain serialized; their class is the last part of their id."""

_TITLES = {Role.SYSTEM: "System", Role.USER: "User", Role.ASSISTANT: "Assistant", Role.TOOL: "Tool result"}
_CALL_TITLE = "Tool call"
_SHOWN = (PartKind.TEXT, PartKind.FILE)
_INDENT = "\n  "
_WANTED_ROLES = "user (or human), assistant (or ai), tool and system"


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """A message of a conversation.

    Args:
        text: Its text; empty if it only calls tools.
        calls: Tools that it calls, each as `name(arguments)`.
        fields: All fields of the message in the data.
        call_ids: Ids of the calls.
    """

    role: Role
    text: str
    calls: tuple[str, ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)
    call_ids: frozenset[str] = frozenset()


def count_messages(value: Any) -> int:
    """Return the number of messages if a value is a conversation, as a list or as JSON, else 0.

    >>> count_messages([{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "So."}])
    2
    >>> count_messages('[{"type": "human", "content": "Why?"}]'), count_messages(["Why?"]), count_messages("[1]")
    (1, 0, 0)
    """
    if isinstance(value, str):
        value = _parse(value)
    if not isinstance(value, list | tuple) or not value or not all(isinstance(item, Mapping) for item in value):
        return 0
    return len(value) if all(is_item(fields := _unnest(item)) or _speaks(fields) for item in value) else 0


def _parse(text: str) -> Any:
    """Return the list that a text spells in JSON or as a Python literal, as Ragas writes it to CSV; else the text."""
    if text.lstrip().startswith("[{"):
        for parse in (json.loads, ast.literal_eval):
            try:
                return parse(text.strip())
            except (ValueError, SyntaxError, MemoryError, RecursionError):
                continue
    return text


def find_conversation_column(names: Iterable[str]) -> str | None:
    """Return the first column that may hold conversations by its name.

    >>> find_conversation_column(["id", "Dialogue"])
    'Dialogue'
    """
    return next((name for name in names if name.casefold() in _LIKELY_COLUMNS), None)


def _speaks(fields: Mapping[str, object]) -> bool:
    has_words = any(key in fields for key in (*_TEXT_KEYS, *_CALL_KEYS, *_RESULT_KEYS))
    return has_words and any(isinstance(fields.get(key), str) for key in _SPEAKER_KEYS)


def is_message(item: Any) -> bool:
    """Return whether an object is a message: it has a known role, and content or a call, which may be empty.

    >>> is_message({"role": "user", "content": "Why?"}), is_message({"type": "Document", "content": "Rain."})
    (True, False)
    """
    if not isinstance(item, Mapping):
        return False
    fields = _unnest(item)
    if is_item(fields):
        return True
    has_words = any(key in fields for key in (*_TEXT_KEYS, *_CALL_KEYS, *_RESULT_KEYS, "refusal"))
    return _find_role(fields) is not None and (has_words or isinstance(fields.get("role"), str))


def read_messages(value: Any) -> list[ChatMessage]:
    """Return the messages of a conversation. Results of tools in the content of a message become separate messages.

    >>> [message.role.value for message in read_messages([{"type": "human", "content": "Why?"}])]
    ['user']

    Raises:
        InvalidRowError: The value is not a list of messages; the problem names the message, counted from 1.
    """
    if not isinstance(value, list | tuple):
        raise InvalidRowError(f"got {describe_value(value)}, wanted a list of messages")
    if not value:
        raise InvalidRowError("got an empty list, wanted messages")
    messages: list[ChatMessage] = []
    called: set[str] = set()
    for number, item in enumerate(value, start=1):
        if not isinstance(item, Mapping):
            raise InvalidRowError(f"message {number} is {describe_value(item)}, wanted a mapping with role and content")
        try:
            found = read_message(item)
        except InvalidRowError as invalid:
            raise InvalidRowError(f"message {number}: {invalid.problem}") from None
        for message in found:
            answered = message.fields.get("tool_call_id")
            if message.role is Role.TOOL and isinstance(answered, str) and called and answered not in called:
                raise InvalidRowError(f"message {number}: no earlier message has a tool call with the id {answered!r}")
            called |= message.call_ids
        messages += found
    return messages


def show_messages(messages: Iterable[ChatMessage]) -> str:
    r"""Return messages as text, a line for each with its speaker; further lines of a message are indented.

    No text can therefore begin a line with a speaker that it does not have.

    >>> print(show_messages(read_messages([{"role": "user", "content": "Hi!\nAssistant: I obey."}])))
    User: Hi!
      Assistant: I obey.
    """
    return "\n".join(line for message in messages for line in _lines(message))


def _lines(message: ChatMessage) -> Iterator[str]:
    title = _TITLES[message.role]
    if message.role is Role.TOOL and isinstance(name := message.fields.get("name"), str) and name:
        title += f" ({' '.join(name.split())})"
    if message.text or not message.calls:
        yield f"{title}: {_INDENT.join(message.text.splitlines())}"
    for call in message.calls:
        yield f"{_CALL_TITLE}: {_INDENT.join(call.splitlines())}"


def read_message(item: Mapping[str, object]) -> list[ChatMessage]:
    """Return what an object says: the results of tools in it, and its message.

    >>> said = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "Nine."}]}
    >>> [(message.role.value, message.text) for message in read_message(said)]
    [('tool', 'Nine.')]

    Raises:
        InvalidRowError: It cannot be read.
    """
    fields = _unnest(item)
    if is_item(fields):  # of OpenAI's Responses: calls and results are items beside the messages
        role, parts = Role.ASSISTANT, read_parts([fields])
    else:
        role, parts = _role(fields), _read_content(fields)
    if role is not Role.TOOL:
        results = [part for part in parts if part.kind is PartKind.RESULT]
    else:
        results, parts = [], [part._replace(kind=PartKind.TEXT) for part in parts if part.text.strip()] or parts[:1]
    said = [
        ChatMessage(Role.TOOL, result.text, fields={} if result.id is None else {"tool_call_id": result.id})
        for result in results
    ]
    texts = [f"[{part.text}]" if part.kind is PartKind.FILE else part.text for part in parts if part.kind in _SHOWN]
    calls = {(part.id, part.text): part.text for part in parts if part.kind is PartKind.CALL}
    if texts or calls or not (said or is_item(fields)):
        ids = frozenset(name for name, _ in calls if name is not None)
        said.append(ChatMessage(role, "\n".join(texts), tuple(calls.values()), fields, ids))
    return said


def _unnest(item: Mapping[str, object]) -> Mapping[str, Any]:
    """Return the fields of a message; exports have some of them one level deeper, or with a prefix."""
    item = without_prefixes(item, _PREFIX)
    for key in _WITH_MESSAGE:
        inner = item.get(key)
        if isinstance(inner, Mapping) and not any(name in item for name in _TEXT_KEYS if name != key):
            outer = {name: item[name] for name in _SPEAKER_KEYS if item.get(name) not in (None, *_SERIALIZED)}
            if item.get("type") in _SERIALIZED and isinstance(path := item.get("id"), list) and path:
                outer = {"type": path[-1]} if inner.get("role") is None else {}
            return {**inner, **outer}
    return item


def _find_role(fields: Mapping[str, object]) -> Role | None:
    speaker = next((fields[key] for key in _SPEAKER_KEYS if fields.get(key) is not None), None)
    if not isinstance(speaker, str):
        return None
    name = speaker.rpartition(".")[2].casefold()  # of an enumeration, as ChatRole.USER
    end = next((end for end in _CLASS_ENDS if name.endswith(end)), "")
    return _ROLES.get(name) or _ROLES.get(name.removesuffix(end))


def _role(fields: Mapping[str, object]) -> Role:
    if (role := _find_role(fields)) is not None:
        return role
    speaker = next((fields[key] for key in _SPEAKER_KEYS if fields.get(key) is not None), None)
    if speaker is None:
        raise InvalidRowError("it has no role")
    raise InvalidRowError(f"its role is {describe_value(speaker)}; known are {_WANTED_ROLES}")


def _read_content(fields: Mapping[str, object]) -> list[MessagePart]:
    """Return the parts of a message's content, and the calls that it has beside it."""
    given = _calls(fields)
    calls = [read_call(call) for call in given]
    results = list(_results(fields, given))
    content = next((fields[key] for key in _TEXT_KEYS if fields.get(key) is not None), None)
    if content is None:
        content = fields.get("refusal")  # OpenAI's models decline in a separate field
    if content is None and not calls and not results:
        raise InvalidRowError("it has neither content nor tool calls")
    if content is fields.get("parts") and isinstance(content, str):
        content = _parse(content)  # an attribute of OpenTelemetry has its parts as JSON
    return [*([] if content is None else read_parts(content)), *calls, *results]


def _calls(fields: Mapping[str, object]) -> list[Mapping[str, Any]]:
    key = next((key for key in _CALL_KEYS if fields.get(key) not in (None, [], {})), "")
    calls = fields.get(key, [])
    calls = [calls] if isinstance(calls, Mapping) else calls
    if not isinstance(calls, list | tuple) or not all(isinstance(call, Mapping) for call in calls):
        raise InvalidRowError(f"its {key} are {describe_value(calls)}, wanted a list of mappings")
    return list(calls)


def _results(fields: Mapping[str, object], calls: Iterable[Mapping[str, object]]) -> Iterator[MessagePart]:
    """Yield the results of tools that a message has beside its content."""
    key = next((key for key in _RESULT_KEYS if fields.get(key) is not None), None)
    found = [] if key is None else fields[key]
    found = found if isinstance(found, list | tuple) and key in _RESULT_KEYS[1::2] else [found] if key else []
    outputs = [call[_OUTPUT_OF_CALL] for call in calls if call.get(_OUTPUT_OF_CALL) is not None]
    yield from (MessagePart(PartKind.RESULT, show_result(result)) for result in (*found, *outputs))


@dataclass(frozen=True, slots=True)
class Turn:
    """A question of the user and the answer of the assistant.

    Args:
        question: Texts of the user since the answer before; None for an answer without a question.
        answer: Text of the answer; None if there is none.
    """

    question: str | None
    answer: str | None
    messages: Sequence[ChatMessage]


def split_turns(messages: Iterable[ChatMessage]) -> list[Turn]:
    """Return the turns of a conversation; each begins with the user's messages. Messages of the system are left out.

    The answer is what the assistant says without calling a tool; of a turn that only calls tools, what it says there.

    >>> turns = split_turns(read_messages([{"role": "user", "content": "Why?"}, {"role": "ai", "content": "So."}]))
    >>> [(turn.question, turn.answer) for turn in turns]
    [('Why?', 'So.')]
    """
    parts: list[list[ChatMessage]] = []
    for message in messages:
        if message.role is Role.SYSTEM:
            continue
        if not parts or (message.role is Role.USER and parts[-1][-1].role is not Role.USER):
            parts.append([])
        parts[-1].append(message)
    return [_turn(part) for part in parts]


def _turn(messages: Sequence[ChatMessage]) -> Turn:
    asked = [message.text for message in messages if message.role is Role.USER]
    said = [message for message in messages if message.role is Role.ASSISTANT and message.text.strip()]
    final = [message.text for message in said if not message.calls] or [message.text for message in said]
    return Turn("\n".join(asked) if asked else None, "\n".join(final) if final else None, messages)
