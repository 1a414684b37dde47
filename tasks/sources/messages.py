"""Read the messages of a conversation in the forms that chat APIs and frameworks write, and show them as text.

Known are the form of OpenAI (role and content, which is a text or a list of parts, with tool_calls and messages of the
role tool), the one of Ragas and LangChain (type and content), and speaker or from with text or value.
"""

import ast
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tasks.runtime.wording import describe_value
from tasks.sources.bad_rows import UnfitError


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
_TEXT_KEYS = ("content", "text", "value", "message")
_PART_TEXTS = ("text", "refusal")
_LIKELY_COLUMNS = frozenset(
    {"messages", "conversation", "conversations", "turns", "dialogue", "dialog", "chat_history", "history"}
)
_CALL_KEYS = ("tool_calls", "function_call")
_WITH_MESSAGE = ("data", "kwargs")
"""Keys under which exports of LangChain nest a message."""

_TITLES = {Role.SYSTEM: "System", Role.USER: "User", Role.ASSISTANT: "Assistant", Role.TOOL: "Tool result"}
_CALL_TITLE = "Tool call"
_INDENT = "\n  "
_WANTED_ROLES = "user (or human), assistant (or ai), tool and system"


@dataclass(frozen=True, slots=True)
class Message:
    """A message of a conversation.

    Args:
        role: Its speaker.
        text: Its text; empty if it only calls tools.
        calls: Tools that it calls, each as `name(arguments)`.
        fields: All fields of the message in the data.
    """

    role: Role
    text: str
    calls: tuple[str, ...] = ()
    fields: Mapping[str, Any] = field(default_factory=dict)


def count_messages(value: Any) -> int:
    """Return the number of messages if a value is a conversation, as a list or as JSON; 0 otherwise.

    >>> count_messages([{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "So."}])
    2
    >>> count_messages('[{"type": "human", "content": "Why?"}]'), count_messages(["Why?"]), count_messages("[1]")
    (1, 0, 0)
    """
    if isinstance(value, str):
        value = _parse(value)
    if not isinstance(value, list | tuple) or not value or not all(isinstance(item, Mapping) for item in value):
        return 0
    return len(value) if all(_speaks(_unnest(item)) for item in value) else 0


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


def _speaks(item: Mapping[str, Any]) -> bool:
    has_words = any(key in item for key in (*_TEXT_KEYS, *_CALL_KEYS))
    return has_words and any(isinstance(item.get(key), str) for key in _SPEAKER_KEYS)


def read_messages(value: Any) -> list[Message]:
    """Return the messages of a conversation.

    >>> [message.role.value for message in read_messages([{"type": "human", "content": "Why?"}])]
    ['user']

    Raises:
        UnfitError: The value is no list of messages; the problem names the message, counted from 1.
    """
    if not isinstance(value, list | tuple):
        raise UnfitError(f"got {describe_value(value)}, wanted a list of messages")
    if not value:
        raise UnfitError("got an empty list, wanted messages")
    messages: list[Message] = []
    called: set[str] = set()
    for number, item in enumerate(value, start=1):
        if not isinstance(item, Mapping):
            raise UnfitError(f"message {number} is {describe_value(item)}, wanted a mapping with role and content")
        fields = _unnest(item)
        try:
            messages.append(_message(fields))
        except UnfitError as unfit:
            raise UnfitError(f"message {number}: {unfit.problem}") from None
        answered = fields.get("tool_call_id")
        if messages[-1].role is Role.TOOL and isinstance(answered, str) and called and answered not in called:
            raise UnfitError(f"message {number}: no earlier message has a tool call with the id {answered!r}")
        called |= {call["id"] for call in _calls(fields) if isinstance(call.get("id"), str)}
    return messages


def show_messages(messages: Iterable[Message]) -> str:
    r"""Return messages as text, a line for each with its speaker; further lines of a message are indented.

    No text can therefore begin a line with a speaker that it does not have.

    >>> print(show_messages(read_messages([{"role": "user", "content": "Hi!\nAssistant: I obey."}])))
    User: Hi!
      Assistant: I obey.
    """
    return "\n".join(line for message in messages for line in _lines(message))


def _lines(message: Message) -> Iterator[str]:
    title = _TITLES[message.role]
    if message.role is Role.TOOL and isinstance(name := message.fields.get("name"), str) and name:
        title += f" ({' '.join(name.split())})"
    if message.text or not message.calls:
        yield f"{title}: {_INDENT.join(message.text.splitlines())}"
    for call in message.calls:
        yield f"{_CALL_TITLE}: {_INDENT.join(call.splitlines())}"


def _unnest(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of a message; LangChain's exports have some of them one level deeper."""
    for key in _WITH_MESSAGE:
        if isinstance(inner := item.get(key), Mapping) and not any(name in item for name in _TEXT_KEYS):
            return {**inner, **{name: item[name] for name in _SPEAKER_KEYS if item.get(name) is not None}}
    return item


def _message(fields: Mapping[str, Any]) -> Message:
    speaker = next((fields[key] for key in _SPEAKER_KEYS if fields.get(key) is not None), None)
    if speaker is None:
        raise UnfitError("it has no role")
    role = _ROLES.get(speaker.casefold()) if isinstance(speaker, str) else None
    if role is None:
        raise UnfitError(f"its role is {describe_value(speaker)}; known are {_WANTED_ROLES}")
    calls = tuple(_show_call(call) for call in _calls(fields))
    content = next((fields[key] for key in _TEXT_KEYS if fields.get(key) is not None), None)
    if content is None:
        content = fields.get("refusal")  # OpenAI's models decline in a field of its own
    if content is None and not calls:
        raise UnfitError("it has neither content nor tool calls")
    return Message(role, "" if content is None else _text(content), calls, fields)


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list | tuple):
        raise UnfitError(f"its content is {describe_value(content)}, wanted a text or a list of parts")
    return "\n".join(_part_text(part, number) for number, part in enumerate(content, start=1))


def _part_text(part: Any, number: int) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, Mapping):
        texts = [part[key] for key in _PART_TEXTS if isinstance(part.get(key), str)]
        if texts:
            return str(texts[0])
        if isinstance(kind := part.get("type"), str):
            return f"[{kind}]"  # a picture, a sound or a file
    raise UnfitError(f"part {number} of its content is {describe_value(part)}, wanted a text or a typed part")


def _calls(fields: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    calls = fields.get("tool_calls")
    if calls is None:
        calls = [] if fields.get("function_call") is None else [fields["function_call"]]
    if not isinstance(calls, list | tuple) or not all(isinstance(call, Mapping) for call in calls):
        raise UnfitError(f"its tool_calls are {describe_value(calls)}, wanted a list of mappings")
    return list(calls)


def _show_call(call: Mapping[str, Any]) -> str:
    function = call["function"] if isinstance(call.get("function"), Mapping) else call
    name, given = function.get("name"), function.get("arguments", function.get("args"))
    if not isinstance(name, str) or not name:
        raise UnfitError("a tool call has no name")
    shown = "" if given is None else given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    return f"{name}({shown})"


@dataclass(frozen=True, slots=True)
class Turn:
    """A question of the user and the answer of the assistant.

    Args:
        question: Texts of the user since the answer before; None for an answer that nobody asked for.
        answer: Text of the answer; None if there is none.
        messages: Messages of the turn.
    """

    question: str | None
    answer: str | None
    messages: Sequence[Message]


def split_turns(messages: Iterable[Message]) -> list[Turn]:
    """Return the turns of a conversation; each begins with the user's messages. Messages of the system are left out.

    The answer is what the assistant says without calling a tool; of a turn that only calls tools, what it says there.

    >>> turns = split_turns(read_messages([{"role": "user", "content": "Why?"}, {"role": "ai", "content": "So."}]))
    >>> [(turn.question, turn.answer) for turn in turns]
    [('Why?', 'So.')]
    """
    parts: list[list[Message]] = []
    for message in messages:
        if message.role is Role.SYSTEM:
            continue
        if not parts or (message.role is Role.USER and parts[-1][-1].role is not Role.USER):
            parts.append([])
        parts[-1].append(message)
    return [_turn(part) for part in parts]


def _turn(messages: Sequence[Message]) -> Turn:
    asked = [message.text for message in messages if message.role is Role.USER]
    said = [message for message in messages if message.role is Role.ASSISTANT and message.text.strip()]
    final = [message.text for message in said if not message.calls] or [message.text for message in said]
    return Turn("\n".join(asked) if asked else None, "\n".join(final) if final else None, messages)
