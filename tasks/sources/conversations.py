"""Read a source of conversations as rows: one per answer of the assistant, or one per conversation.

What was said and found before a question goes with its row: passages, results of tools and answers of earlier turns.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Generator, Iterator, Mapping
from contextlib import closing
from itertools import islice
from typing import Any

from metric_core import columns as c
from metric_core.errors import SourceError
from tasks.options.source_options import SourceOptions
from tasks.sources.cells.ids import as_id
from tasks.sources.cells.messages import count_messages
from tasks.sources.cells.text_cells import parse_cell
from tasks.sources.column_mapping import check_mapped, find_id_column, resolve_columns
from tasks.sources.readers.bad_rows import InvalidRowError
from tasks.sources.readers.protocol import RawRow, RowSource, Unreadable
from tasks.sources.redaction import Redaction
from tasks.sources.turns import read_conversation

_NAMES = frozenset({c.MESSAGES, "conversation", "conversations", "turns"})
"""Columns that hold conversations without being mapped, if the first value in them is one."""

_FIRST_ROWS = 100
"""Rows that are searched for a first value."""

_DIGITS = 16


def read_conversations(source: RowSource, options: SourceOptions) -> tuple[RowSource, SourceOptions]:
    """Return the rows of a source of conversations, and the options for reading them; other sources as they are.

    Raises:
        SourceError: The source cannot be read, or lacks a column that the options name.
    """
    column = _find_column(source, options)
    if column is None:
        return source, options
    names = _names(source, _FIRST_ROWS)
    check_mapped(names, source, options)
    rows = ConversationRows(source, column, options, find_id_column(names, source.name, options))
    changes: dict[str, Any] = {"column_map": {}, "id_column": "" if options.id_column == "" else None}
    return rows, options.model_copy(update=changes)


def _find_column(source: RowSource, options: SourceOptions) -> str | None:
    """Return the column with conversations: the mapped one, or one whose first value is a conversation."""
    names = _names(source, 1)
    mapped = next((name for name, target in options.column_map.items() if target == c.MESSAGES), None)
    if mapped is not None:
        return mapped if mapped in {*names, *_names(source, _FIRST_ROWS)} else None  # the reader says that it lacks it
    candidates = [name for name in names if name.casefold() in _NAMES]
    candidates += filter(None, [resolve_columns(names, options.column_map).bindings.get(c.USER_INPUT)])
    if not candidates:
        return None
    try:
        with closing(source.rows(batch_rows=1)) as rows:
            for row in islice(rows, _FIRST_ROWS):
                content = {} if isinstance(row.content, Unreadable) else row.content
                values = {name: value for name in candidates if (value := content.get(name)) is not None}
                if any(value != "" for value in values.values()):
                    return next((name for name, value in values.items() if count_messages(value)), None)
    except SourceError:
        return None  # it is raised again when the rows are read
    return None


def _names(source: RowSource, most: int) -> list[str]:
    names: dict[str, None] = {}
    with closing(source.column_sets(most)) as sets:
        for each in sets:
            names.update(dict.fromkeys(each))
    return list(names)


class ConversationRows(RowSource):
    """The rows of a source of conversations.

    Args:
        column: Column with the messages.
        id_column: Column with the ids of the conversations; None if there is none.
    """

    def __init__(self, source: RowSource, column: str, options: SourceOptions, id_column: str | None) -> None:
        super().__init__(source.name)
        self.unit, self.text_cells, self.fills_keys = source.unit, source.text_cells, source.fills_keys
        self._source = source
        self._column = column
        self._map = {name: target for name, target in options.column_map.items() if target != c.MESSAGES}
        self._whole = options.conversations == "whole"
        self._id_column = id_column
        self._has_ids = options.id_column != ""
        self._redaction = Redaction(options.redact) if options.redact is not None else None
        self._unanswered = 0
        self._unread: Counter[str] = Counter()
        self._repeats: Counter[str] = Counter()

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings about the source, about questions without an answer, and about fields that are not read."""
        found = list(self._source.warnings)
        if self._unanswered:
            questions = "1 question" if self._unanswered == 1 else f"{self._unanswered:,} questions"
            has = "has" if self._unanswered == 1 else "have"
            found.append(f"{questions} of the conversations {has} no answer, and no row")
        for name, count in self._unread.items():
            messages = "1 message" if count == 1 else f"{count:,} messages"
            found.append(f"the field {name!r} of {messages} is not read")
        return tuple(found)

    @property
    def hints(self) -> tuple[str, ...]:
        """Advice of the source."""
        return self._source.hints

    def where(self, number: int) -> str:
        """Return the place of a conversation."""
        return self._source.where(number)

    def rows(self, batch_rows: int) -> Generator[RawRow, None, None]:
        """Yield the rows of the conversations in order; a conversation that cannot be read is one unreadable row."""
        self._unanswered = 0
        self._unread.clear()
        self._repeats.clear()
        with closing(self._source.rows(batch_rows)) as rows:
            for row in rows:
                if isinstance(row.content, Unreadable):
                    yield row
                    continue
                expanded: list[tuple[str, Mapping[str, Any] | Unreadable]]
                try:
                    expanded = list(self._expand(row.content))
                except InvalidRowError as invalid:
                    expanded = [("", Unreadable(f"{self._column}: {invalid.problem}", invalid.hint))]
                for place, content in expanded:
                    yield RawRow(row.number, content, ", ".join(filter(None, (row.detail, place))))

    def _expand(self, content: Mapping[str, object]) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield the rows of a conversation, each with its place in it."""
        of_row = resolve_columns(content, self._map).bindings
        used = {*of_row.values(), self._column, self._id_column}
        extras = {name: value for name, value in content.items() if name not in used and name not in c.COLUMNS}
        given = {column: content[name] for column, name in of_row.items() if content[name] is not None}
        value = content.get(self._column)
        value = parse_cell(value) if isinstance(value, str) else value
        is_question = of_row.get(c.USER_INPUT) == self._column and not count_messages(value)
        if isinstance(given.get(c.USER_INPUT), str) and (value is None or value == "" or is_question):
            yield "", {**extras, **given, **self._ids(self._name(content, given, None), given)}
            return  # a row without a conversation
        if value is None:
            raise InvalidRowError("got null, wanted a list of messages")
        if of_row.get(c.USER_INPUT) == self._column:
            given.pop(c.USER_INPUT)
        conversation = read_conversation(value, given)
        self._unread.update(conversation.unread_fields)
        stands_alone = conversation.is_history
        name = self._name(content, given, value, in_session=not stands_alone)
        if self._whole:
            yield "", {**extras, **conversation.whole(), **self._ids(name, given, session=name)}
            return
        self._unanswered += conversation.unanswered
        for number, columns in conversation.rows_of_turns():
            if stands_alone:
                yield "", {**extras, **columns, **self._ids(name, given)}
            else:
                yield f"turn {number}", {**extras, **columns, **self._ids(name, given, f"#{number}", session=name)}

    def _name(
        self, content: Mapping[str, object], given: Mapping[str, object], messages: Any, *, in_session: bool = False
    ) -> Any:
        """Return the id of a conversation: from the id column, else the one of its session, else a digest.

        Rows that each have one answer of a session cannot have its id.
        """
        if self._id_column is not None:
            return content.get(self._id_column)
        if in_session and given.get(c.SESSION_ID) is not None:
            return given[c.SESSION_ID]
        identity = {"messages": messages, "given": given}
        if self._redaction is not None:  # an id must not reveal what is redacted
            identity = self._redaction.row(identity)
        text = json.dumps(identity, sort_keys=True, default=str)
        digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGITS]
        self._repeats[digest] += 1
        return digest if self._repeats[digest] == 1 else f"{digest}-{self._repeats[digest]}"

    def _ids(self, name: Any, given: Mapping[str, object], suffix: str = "", session: Any = None) -> dict[str, Any]:
        """Return the id of a row and of its session, which is the conversation unless the data names another."""
        ids = {c.SESSION_ID: given.get(c.SESSION_ID, session)}
        if self._has_ids:
            is_empty = name is None or (isinstance(name, str) and not name.strip())
            ids[c.ID_COLUMNS[0]] = name if is_empty else f"{as_id(name)}{suffix}"
        return ids
