"""Find questions and answers in what spans recorded as their inputs and outputs."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from tasks.runtime.wording import quote_names
from tasks.sources.cells.message_parts import PartKind, is_part, read_parts
from tasks.sources.cells.messages import ChatMessage, Role, is_message, read_message
from tasks.sources.readers.bad_rows import InvalidRowError
from tasks.sources.traces.passage_lists import PASSAGES_KEYS, are_documents, hold_documents, is_document
from tasks.sources.traces.values import decode_text, is_unread_object, parse_literal

_QUESTION_KEYS = (
    *("question", "query", "user_input", "user_query", "user_question", "user_message", "query_str", "input"),
)
_INPUT_KEYS = ("inputs", "prompt", "prompts", "text", "content", "message", "kwargs", "args", "query_bundle", "data")
"""Keys of an input that are looked at after its messages."""
_ANSWER_KEYS = ("answer", "answers", "final_answer", "response", "output", "outputs", "result", "reply", "replies")
_OUTPUT_KEYS = (
    *("text", "content", "output_text", "generated_text", "completion", "message", "choices", "generations"),
    *("candidates", "return_values", "data"),
)
"""Keys of an output that are looked at after its messages."""
_CHOICE_KEYS = frozenset({"choices", "generations", "candidates", "replies", "answers"})
"""Keys of lists of alternatives; the first one counts."""
_MESSAGES_KEYS = ("messages", "contents", "conversation")
_HISTORY_KEYS = (
    *("chat_history", "history", "conversation_history", "message_history", "chat_messages", "previous_messages"),
    *("past_messages", "memory"),
)
_NO_ANSWER_KEYS = frozenset(
    {
        *(*_QUESTION_KEYS, *_HISTORY_KEYS, *PASSAGES_KEYS, *_MESSAGES_KEYS, *_CHOICE_KEYS),
        *("tool_calls", "function_call", "error", "errors", "exception"),
    }
)
"""Keys of what steps pass on to each other: an object that has one of them, and no answer, is none as a whole."""
_REPLY_KEYS = frozenset({"model", "object"})
"""Keys of a reply of a model, which may be a call of a tool alone."""
_NULLS = frozenset({"", "null", "undefined"})
"""Texts that exporters write for an output that is missing, such as a stream that was not read to its end."""
_INPUTS_OF_PARTS = "data"
"""Argument of a pipeline of Haystack: the inputs of its components, by their names."""
_DEEPEST = 6


class Asked(NamedTuple):
    """A question, and the conversation before it.

    Args:
        question: Text of the question; None if there is none to recognize.
        earlier: Messages of the user and the assistant before it.
    """

    question: str | None
    earlier: list[ChatMessage]


_NOTHING = Asked(None, [])


def find_asked(value: Any) -> Asked:
    """Return what an input asks: its text, the last message of the user, or a usual key of an object.

    >>> find_asked({"question": "Why?", "chat_history": []}).question
    'Why?'
    >>> asked = find_asked([{"role": "user", "content": "Hi!"}, {"type": "ai", "content": "Hello."}, ("user", "Why?")])
    >>> asked.question, [message.text for message in asked.earlier]
    ('Why?', ['Hi!', 'Hello.'])
    >>> find_asked({"city": "Paris", "days": 3}).question is None
    True
    """
    value = decode_text(value)
    loaded = parse_literal(value)
    asked = _asked(loaded)
    if asked.question is None and isinstance(value, str) and _is_text(loaded, frozenset()):
        return Asked(_nonblank(value), [])
    return asked


def _asked(value: Any) -> Asked:
    if isinstance(value, str):
        return Asked(_nonblank(value), [])
    if (messages := read_said(value)) is not None:
        return _last_question(messages)
    if isinstance(value, list | tuple):
        # A list of one: positional arguments, or prompts of a batch.
        return find_asked(value[0]) if len(value) == 1 else Asked(_text_of_parts(value), [])
    if not isinstance(value, Mapping):
        return _NOTHING
    said = next(filter(None, (read_said(parse_literal(value.get(key))) for key in _MESSAGES_KEYS)), [])
    history = next(filter(None, (_read_history(value.get(key)) for key in _HISTORY_KEYS)), [])
    asked = next((each for each in _candidates(value, said, history) if each.question is not None), _NOTHING)
    return asked if asked.earlier else Asked(asked.question, _before(asked.question, history or said))


def _candidates(value: Mapping[str, object], said: list[ChatMessage], history: list[ChatMessage]) -> Iterator[Asked]:
    """Yield what parts of an object ask, the most likely one first."""
    yield from (_find_in(value, key) for key in _QUESTION_KEYS)
    yield _last_question(said)
    yield from (_find_in(value, key) for key in _INPUT_KEYS)
    yield from _of_parts(value)
    yield _last_question(history)
    if len(value) == 1:
        yield from (Asked(_nonblank(inner), []) for inner in value.values() if isinstance(inner, str))


def _of_parts(value: Mapping[str, Any]) -> Iterator[Asked]:
    """Yield what the parts of a program ask, if an object has the input of each by its name."""
    parts = list(value.values())
    if not all(isinstance(part, Mapping) for part in parts):
        return
    yield from (_find_in(part, key) for key in _QUESTION_KEYS for part in parts)
    yield from (_asked(part) for part in parts)


def _find_in(value: Mapping[str, object], key: str) -> Asked:
    return _NOTHING if value.get(key) in (None, "", [], {}) else find_asked(value[key])


def _last_question(messages: list[ChatMessage]) -> Asked:
    places = [place for place, said in enumerate(messages) if said.role is Role.USER and said.text.strip()]
    return Asked(messages[places[-1]].text, _spoken(messages[: places[-1]])) if places else _NOTHING


def _before(question: str | None, messages: list[ChatMessage]) -> list[ChatMessage]:
    """Return what was said before a question that is beside the messages, or the last of them."""
    asked = _last_question(messages)
    return asked.earlier if asked.question == question else _spoken(messages)


def _spoken(messages: Iterable[ChatMessage]) -> list[ChatMessage]:
    return [said for said in messages if said.role in (Role.USER, Role.ASSISTANT) and said.text.strip()]


def find_answer(value: Any) -> str | None:
    r"""Return the answer in an output: a text, what the assistant said last, or a usual key of an object.

    What the assistant said before the last message of the user is not an answer, nor is a call of a tool.

    >>> find_answer({"answer": "So.", "docs": []}), find_answer({"choices": [{"message": {"content": "So."}}]})
    ('So.', 'So.')
    >>> find_answer('{"type": "ai", "data": {"content": "So."}}'), find_answer('{"verdict": true}')
    ('So.', '{"verdict": true}')
    >>> find_answer({"answer": 42}), find_answer(True), find_answer(["Delft", "Gouda"])
    ('42', 'true', 'Delft\nGouda')
    """
    value = decode_text(value)
    loaded = parse_literal(value)
    found = _answer(loaded)
    if found is None and isinstance(value, str) and _is_text(loaded, _NO_ANSWER_KEYS):
        return _nonblank(value)
    return found


def _answer(value: Any) -> str | None:
    if isinstance(value, str):
        return _nonblank(value)
    if isinstance(value, bool | int | float):
        return None if value != value else json.dumps(value)  # noqa: PLR0124 a missing value of a data frame
    if (messages := read_said(value)) is not None:
        return _last_answer(messages)
    if isinstance(value, list | tuple):
        # A list of one: choices of a model, generations of a batch.
        return find_answer(value[0]) if len(value) == 1 and not are_documents(value) else _listed(value)
    return _answer_in(value) if isinstance(value, Mapping) and not are_documents(value) else None


def _answer_in(value: Mapping[str, object]) -> str | None:
    """Return the answer in an object: under a usual key, or what the last part of a program made."""
    for key in (*_ANSWER_KEYS, *_MESSAGES_KEYS, *(() if is_document(value) else _OUTPUT_KEYS)):
        inner = parse_literal(value.get(key))
        if key in _CHOICE_KEYS and isinstance(inner, list | tuple):
            inner = inner[:1]
        if key in _MESSAGES_KEYS:
            inner = read_said(inner)
            found = None if inner is None else _last_answer(inner)
        else:
            found = None if inner in (None, "", [], {}) else find_answer(inner)
        if found is not None:
            return found
    if all(isinstance(part, Mapping) for part in value.values()):  # what each part of a program made, in order
        parts = [part for key, part in value.items() if key not in _NO_ANSWER_KEYS]
        made = [found for part in parts if (found := _answer(part)) is not None]
        return made[-1] if made else None
    ((key, inner),) = value.items() if len(value) == 1 else (("", None),)
    return _answer(inner) if key not in _NO_ANSWER_KEYS and isinstance(inner, str) else None


def describe_output(value: Any) -> str | None:
    """Describe an output without an answer by its form; None for one that is known to have none.

    >>> describe_output('{"score": [1, 2]}'), describe_output([1, 2]), describe_output("undefined") is None
    ("an object with 'score'", 'a list', True)
    """
    loaded = parse_literal(value)
    if read_said(loaded) is not None or are_documents(loaded):
        return None
    if isinstance(loaded, Mapping) and loaded:
        if loaded.keys() & {*_NO_ANSWER_KEYS, *_REPLY_KEYS}:
            return None
        inner = next((loaded[key] for key in (*_ANSWER_KEYS, *_OUTPUT_KEYS) if key in loaded), None)
        if isinstance(inner, Mapping | list | tuple):
            return describe_output(inner)
        return f"an object with {quote_names(loaded, most=4)}"
    return "a list" if isinstance(loaded, list | tuple) and loaded else None


def _listed(value: Sequence[Any]) -> str | None:
    """Return the text of a list of parts of a message, or of a list of texts; None for another list."""
    if value and all(isinstance(item, str) for item in value):
        return "\n".join(texts) if (texts := list(filter(None, map(_nonblank, value)))) else None
    return _text_of_parts(value)


def _last_answer(messages: list[ChatMessage]) -> str | None:
    asked = max((place for place, said in enumerate(messages) if said.role is Role.USER), default=-1)
    said = [each for each in messages[asked + 1 :] if each.role is Role.ASSISTANT and each.text.strip()]
    final = [each for each in said if not each.calls] or said
    return final[-1].text if final else None


def find_result(value: Any) -> str:
    """Return the result of a tool as text: what its messages say, or the value itself.

    >>> find_result('{"type": "tool", "content": "08:30", "tool_call_id": "t1"}'), find_result({"output": "08:30"})
    ('08:30', '08:30')
    """
    value = decode_text(value)
    loaded = parse_literal(value)
    while isinstance(loaded, Mapping) and len(loaded) == 1 and not isinstance(value, str):
        loaded = parse_literal(next(iter(loaded.values())))
    if texts := [said.text for said in read_said(loaded) or () if said.text.strip()]:
        return "\n".join(texts)
    return value if isinstance(value, str) else find_answer(loaded) or str(loaded)


def _is_text(loaded: Any, passed_on: frozenset[str]) -> bool:
    """Return whether a text that holds this value counts as it is written: prose, or an object of an unknown form."""
    if isinstance(loaded, Mapping):
        if is_message(loaded) or passed_on & loaded.keys() or hold_documents(loaded):
            return False
        if isinstance(loaded.get(_INPUTS_OF_PARTS), Mapping):
            return False
        made = [parse_literal(loaded[key]) for key in (*_ANSWER_KEYS, *_OUTPUT_KEYS) if key in loaded]
        return all(each not in (None, "", [], {}) and _is_text(each, passed_on) for each in made)
    if isinstance(loaded, list | tuple):
        is_other = read_said(loaded) is not None or are_documents(loaded) or hold_documents(loaded)
        return not is_other and not any(map(is_part, loaded))
    return True


def read_said(value: Any) -> list[ChatMessage] | None:
    """Return the messages of a list, or of a single message; None if it is neither. Unreadable ones are left out.

    >>> read_said([{"role": "user", "parts": [{"type": "text", "content": "Why?"}]}])[0].text
    'Why?'
    >>> read_said([{"type": "constructor", "id": ["x", "AIMessage"], "kwargs": {"content": "So."}}])[0].text
    'So.'
    """
    if isinstance(value, Mapping):
        return read_said([value]) or None
    if isinstance(value, list | tuple) and len(value) == 1 and isinstance(value[0], list | tuple):
        value = value[0]
    if not isinstance(value, list | tuple) or not value:
        return None
    items = [_as_object(item) for item in value]
    if not all(is_message(item) for item in items):
        return None
    found: list[ChatMessage] = []
    for item in items:
        try:
            found += read_message(item)
        except InvalidRowError:
            continue
    return found


def _as_object(item: Any) -> Any:
    """Return a message that is a pair of its role and its text, or the text of an object, as an object."""
    item = parse_literal(item)
    is_pair = isinstance(item, list | tuple) and len(item) == 2 and all(isinstance(part, str) for part in item)
    return {"role": item[0], "content": item[1]} if is_pair else item


def _read_history(value: Any) -> list[ChatMessage]:
    """Return the messages of a history, which may be pairs of a question and its answer."""
    loaded = parse_literal(value)
    if (messages := read_said(loaded)) is not None:
        return messages
    if not isinstance(loaded, list | tuple) or not all(is_message(_pair(item)) for item in loaded):
        return []
    return [
        ChatMessage(role, text) for pair in loaded for role, text in zip((Role.USER, Role.ASSISTANT), pair, strict=True)
    ]


def _pair(item: Any) -> Any:
    is_pair = isinstance(item, list | tuple) and len(item) == 2 and all(isinstance(part, str) for part in item)
    return {"role": "user", "content": item[0]} if is_pair else None


def _text_of_parts(value: Any) -> str | None:
    """Return the text of a list of parts of a message; None if it is another list."""
    if not value or not all(map(is_part, value)):
        return None
    try:
        return _nonblank("\n".join(part.text for part in read_parts(value) if part.kind is PartKind.TEXT))
    except InvalidRowError:
        return None


def prompt_text(value: Any) -> str | None:
    """Return all text in an input of a model, to find passages in it."""
    loaded = parse_literal(value)
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


def _nonblank(text: str) -> str | None:
    shown = text.strip()
    return None if shown in _NULLS or is_unread_object(shown) else text
