"""Make the columns of samples from the messages of a conversation: for each answer, or for the conversation."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from metric_core import columns as c
from tasks.runtime.wording import snake_case
from tasks.sources.cells.messages import (
    MESSAGE_KEYS,
    ChatMessage,
    Role,
    Turn,
    read_messages,
    show_messages,
    split_turns,
)
from tasks.sources.cells.passage_objects import as_passage
from tasks.sources.cells.text_cells import parse_cell
from tasks.sources.column_mapping import resolve_columns
from tasks.sources.readers.bad_rows import InvalidRowError

_OF_TURNS = frozenset({c.USER_INPUT, c.RESPONSE, c.SESSION_ID, *c.CONVERSATION_COLUMNS})
"""Columns that come from the messages themselves; the others of a row belong to its last turn."""

_LISTS = frozenset({c.RETRIEVED_CONTEXTS, c.RETRIEVED_CONTEXT_IDS, c.RETRIEVED_CONTEXT_SCORES})
_PASSAGES = (
    *("documents", "retrieval_context", "retrieved_context", "retrieved_documents", "source_documents", "passages"),
    *("docs", "chunks", "context"),
)
"""Further fields of messages with the passages of a turn, in order of precedence; others than passages are not read."""
_TELLING = re.compile(r"source|citation|reference|context|document|passage|chunk|result|tool|evidence|retriev|search")
"""Parts of names of fields that say that a reader may miss them."""
_ASIDE = frozenset({"tool_call_id", "tool_use_id", "tool_name", "tool_choice", "invalid_tool_calls"})


@dataclass(frozen=True, slots=True)
class Conversation:
    """The conversation of a row of the data.

    Args:
        turns: Turns, including the one of the row's own question and answer.
        instructions: Messages of the system.
        row: Columns that the row has beside its messages, by their names in samples.
        is_history: True if the row has a separate answer, so that the messages only lead to it.
    """

    turns: Sequence[Turn]
    instructions: Sequence[ChatMessage]
    row: Mapping[str, Any]
    is_history: bool

    @property
    def unread_fields(self) -> list[str]:
        """Names of fields of messages whose content is not read, although they tell of passages or tools."""
        names: list[str] = []
        for message in (message for turn in self.turns for message in turn.messages):
            read = {*MESSAGE_KEYS, *_bind_fields(message.fields).values(), *_ASIDE}
            names += [
                name
                for name, value in message.fields.items()
                if name not in read and value not in (None, "", [], {}) and _TELLING.search(name.casefold())
            ]
        return names

    @property
    def unanswered(self) -> int:
        """Number of questions without an answer, which have no row."""
        turns = self.turns[:0] if self.is_history else self.turns
        return sum(turn.question is not None and turn.answer is None for turn in turns)

    def whole(self) -> dict[str, Any]:
        """Return the columns of the conversation as one row.

        Raises:
            InvalidRowError: No message has a text.
        """
        messages = [*self.instructions, *(message for turn in self.turns for message in turn.messages)]
        if not any(message.text.strip() for message in messages):
            raise InvalidRowError("no message has a text")
        return {**self._of_row(), c.CONVERSATION: show_messages(messages)}

    def rows_of_turns(self) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield the number and the columns of each answered question; of a history, only those of its end.

        Raises:
            InvalidRowError: No question has an answer.
        """
        answered = [turn for turn in self.turns if turn.question is not None and turn.answer is not None]
        if not answered:
            raise InvalidRowError("no message of the user has an answer of the assistant with a text")
        own = [_columns_of_turn(turn) for turn in self.turns]
        number = 0
        for place, turn in enumerate(self.turns, start=1):
            if turn.question is None or turn.answer is None:
                continue
            number += 1
            is_last = turn is answered[-1]
            if is_last or not self.is_history:
                yield (
                    number,
                    {
                        **(self._of_row() if is_last else {}),
                        **own[place - 1],
                        c.USER_INPUT: turn.question,
                        c.RESPONSE: turn.answer,
                        **_before(self.turns[:place], own[:place]),
                    },
                )

    def _of_row(self) -> dict[str, Any]:
        return {name: value for name, value in self.row.items() if name not in _OF_TURNS}


def read_conversation(value: Any, row: Mapping[str, object]) -> Conversation:
    """Return the conversation in a row.

    >>> said = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "So."}]
    >>> [columns for _, columns in read_conversation(said, {}).rows_of_turns()]
    [{'user_input': 'Why?', 'response': 'So.'}]

    Args:
        value: List of messages.
        row: Columns that the row has beside it, by their names in samples.

    Raises:
        InvalidRowError: A message cannot be read, or the row has an answer that the messages contradict.
    """
    messages = read_messages(value)
    turns, is_history = _add_own_turn(split_turns(messages), row)
    return Conversation(turns, [each for each in messages if each.role is Role.SYSTEM], row, is_history)


def _add_own_turn(turns: list[Turn], row: Mapping[str, object]) -> tuple[list[Turn], bool]:
    """Return the turns, with that of the row's separate question and answer, and whether there is one.

    Raises:
        InvalidRowError: The row has a separate answer, but the messages end with another one.
    """
    question, answer = row.get(c.USER_INPUT), row.get(c.RESPONSE)
    if not isinstance(answer, str) or not answer.strip():
        return turns, False
    last = turns[-1] if turns else None
    asked = question if isinstance(question, str) and question.strip() else None
    is_last = last is not None and last.question is not None and asked in {None, last.question}
    if last is not None and is_last and last.answer in {None, answer}:
        messages = last.messages if last.answer else [*last.messages, ChatMessage(Role.ASSISTANT, answer)]
        return [*turns[:-1], Turn(last.question, answer, messages)], True
    if asked is None:
        raise InvalidRowError(
            "the messages end with an answer, and the row has another one as its response: wanted messages that end "
            "with the question, or the question as user_input"
        )
    said = [ChatMessage(Role.USER, asked), ChatMessage(Role.ASSISTANT, answer)]
    return [*turns, Turn(asked, answer, said)], True


def _columns_of_turn(turn: Turn) -> dict[str, Any]:
    """Return the columns of a sample that the messages of a turn have."""
    found: dict[str, Any] = {}
    for message in turn.messages:
        for column, name in _bind_fields(message.fields).items():
            value = _parse(message.fields[name])
            if column in _LISTS and isinstance(found.get(column), list) and isinstance(value, list | tuple):
                value = [*found[column], *value]
            found[column] = value
    return found


def _bind_fields(fields: Mapping[str, object]) -> dict[str, str]:
    """Return the columns that the fields of a message have beside its text, with the names of the fields."""
    names = [name for name, value in fields.items() if value is not None]
    bound = {column: name for column, name in resolve_columns(names, {}).bindings.items() if column not in _OF_TURNS}
    found = [name for known in _PASSAGES for name in names if snake_case(name) == known and _holds_texts(fields[name])]
    return {**({c.RETRIEVED_CONTEXTS: found[0]} if found else {}), **bound}


def _holds_texts(value: Any) -> bool:
    """Return whether a value is a list of passages with texts."""
    value = _parse(value)
    passages = [as_passage(item) for item in value] if isinstance(value, list | tuple) else []
    return bool(passages) and all(passage is not None and passage.text is not None for passage in passages)


def _before(turns: Sequence[Turn], own: Sequence[Mapping[str, object]]) -> dict[str, Any]:
    """Return the columns of the last of these turns that come from the turns before and from tools."""
    *earlier, _ = turns
    own_passages = set(_passages(own[-1]))
    passages = dict.fromkeys(text for each in own[:-1] for text in _passages(each) if text not in own_passages)
    said = [m for turn in earlier for m in turn.messages if m.role in {Role.USER, Role.ASSISTANT} and m.text.strip()]
    results = [m.text for turn in turns for m in turn.messages if m.role is Role.TOOL and m.text.strip()]
    columns = {
        c.EARLIER_TURNS: show_messages(ChatMessage(message.role, message.text) for message in said),
        c.EARLIER_CONTEXTS: list(passages),
        c.TOOL_RESULTS: results,
        c.EARLIER_ANSWERS: [turn.answer for turn in earlier if turn.answer is not None],
    }
    return {name: value for name, value in columns.items() if value}


def _passages(own: Mapping[str, object]) -> Iterator[str]:
    """Yield the texts of a turn's passages; a passage that is none is reported where the turn is the row's own."""
    found = own.get(c.RETRIEVED_CONTEXTS)
    for item in found if isinstance(found, list | tuple) else ():
        passage = as_passage(item)
        if passage is not None and passage.text is not None and passage.text.strip():
            yield passage.text


def _parse(value: Any) -> Any:
    return parse_cell(value) if isinstance(value, str) else value
