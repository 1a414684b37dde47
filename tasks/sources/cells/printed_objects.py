"""Read what Python prints of objects: documents, messages and answers of retrieval frameworks, and arrays of NumPy.

Programs that convert objects to text, such as pandas when it writes CSV and instrumentors that have no form of their
own for a class, store `Document(metadata={'source': 'a.md'}, page_content='Rain.')`.
"""

import ast
import re
from collections.abc import Mapping
from typing import Any

_DOCUMENTS = ("Document", "Node", "TextNode", "NodeWithScore", "ScoredPoint")
_MESSAGES = (
    *("ChatMessage", "HumanMessage", "AIMessage", "AIMessageChunk", "SystemMessage", "ToolMessage"),
    *("FunctionMessage", "ChatMessageChunk"),
)
_ANSWERS = ("GeneratedAnswer", "ExtractedAnswer")
"""Classes of Haystack whose first field is the answer. They print documents in a form that cannot be read."""
_ARRAYS = ("array", "np.array", "numpy.array")
_NAMES = "|".join(map(re.escape, (*_DOCUMENTS, *_MESSAGES, *_ANSWERS, *_ARRAYS)))
_START = re.compile(rf"(?:\[\s*)*(?:(?:{_NAMES})\(|(?:page_content|content)=['\"])")
"""Start of a text that is worth reading: the name of a class, or the fields of one as `str` shows them."""

_SPACE = re.compile(r"\s*")
_STRING = re.compile(
    r"[rRbBuU]{0,2}(?:'''(?:[^\\]|\\.)*?'''|\"\"\"(?:[^\\]|\\.)*?\"\"\"|'(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\")",
    re.DOTALL,
)
_NAME = re.compile(r"[^\W\d][\w.]*(?=\()")
_FIELD = re.compile(r"[^\W\d]\w*=")
"""Name of a field. Haystack's documents have `content: '...'`, which is cut short and whose quotes are not escaped."""
_MEMBER = re.compile(r"<[\w.]+:\s*")
_UNREAD = re.compile(r"<[^<>]*>")
_BARE = re.compile(r"[^\s,()\[\]{}<>'\"=]+")
_CLOSING = {"[": "]", "(": ")", "{": "}"}
_CONSTANTS: Mapping[str, Any] = {"None": None, "True": True, "False": False}
_DEEPEST = 40


class _UnreadableError(ValueError):
    """A part of the text is not what Python prints of an object that this module knows."""


def parse_printed(text: str) -> Any:
    """Return the objects that a text shows, as mappings and lists; None if it shows no object of a known class.

    >>> parse_printed("[Document(metadata={'source': 'a.md'}, page_content='Rain.')]")
    [{'metadata': {'source': 'a.md'}, 'page_content': 'Rain.'}]
    >>> parse_printed("page_content='Rain.' metadata={'source': 'a.md'}")
    {'page_content': 'Rain.', 'metadata': {'source': 'a.md'}}
    >>> parse_printed("ChatMessage(_role=<ChatRole.ASSISTANT: 'assistant'>, _content=[TextContent(text='So.')])")
    {'role': 'assistant', 'content': [{'text': 'So.'}]}
    >>> parse_printed("AIMessage(content='So.')"), parse_printed("array(['a', 'b'], dtype=object)")
    ({'content': 'So.', 'type': 'AIMessage'}, ['a', 'b'])
    >>> parse_printed("Document(id=a, content: 'It's raining...')") is parse_printed("max(a=1)") is None
    True
    """
    text = text.strip()
    if _START.match(text) is None:
        return None
    parser = _Parser(text)
    try:
        return parser.read_all()
    except _UnreadableError:
        return parser.answer


class _Parser:
    """A reader of the text from its start to its end.

    `answer` is the first field of an answer, as far as it was read.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self.answer: dict[str, Any] | None = None

    def read_all(self) -> Any:
        """Return the value that the whole text shows."""
        is_object = _NAME.match(self._text) or self._text.startswith("[")
        value = self._value(_DEEPEST) if is_object else self._fields("", _DEEPEST, ends="")[1]
        if self._at < len(self._text):
            raise _UnreadableError
        return value

    def _value(self, depth: int) -> Any:
        self._skip(_SPACE)
        opening = self._text[self._at : self._at + 1]
        if not depth or not opening:
            raise _UnreadableError
        if (name := self._skip(_NAME)) is not None:
            return self._object(name, depth - 1)
        if opening == "{":
            return self._mapping(depth - 1)
        if opening in _CLOSING:
            self._at += 1
            return self._items(_CLOSING[opening], depth - 1)
        return self._plain(depth - 1)

    def _plain(self, depth: int) -> Any:
        """Return a text, a number, a constant, a member of an enumeration, or what is shown of an unread object."""
        if (shown := self._skip(_STRING)) is not None:
            return _evaluate(shown)
        if self._skip(_MEMBER) is not None:  # of an enumeration, as <ChatRole.USER: 'user'>
            value = self._value(depth)
            self._expect(">")
            return value
        if (unread := self._skip(_UNREAD)) is not None:
            return unread
        if (bare := self._skip(_BARE)) is None:
            raise _UnreadableError
        return _CONSTANTS[bare] if bare in _CONSTANTS else _number(bare)

    def _object(self, name: str, depth: int) -> Any:
        """Return the fields of an object, or the value that one without fields holds, such as that of an array."""
        self._expect("(")
        values, fields = self._fields(name, depth, ends=")")
        if values and (name in _ARRAYS or not fields):
            return values[0]
        if name in _MESSAGES and "role" not in fields:
            fields["type"] = name
        return fields

    def _fields(self, name: str, depth: int, ends: str) -> tuple[list[Any], dict[str, Any]]:
        """Return the values without a name and the named ones up to a bracket, or to the end of the text."""
        values: list[Any] = []
        fields: dict[str, Any] = {}
        while not self._ends(ends):
            if (field := self._skip(_FIELD)) is None:
                values.append(self._value(depth))
            else:
                fields[field.removesuffix("=").lstrip("_")] = self._value(depth)
                if name in _ANSWERS and self.answer is None:
                    self.answer = dict(fields)
            self._skip(_SPACE)
            if ends and not self._text.startswith(ends, self._at):
                self._expect(",")
        return values, fields

    def _items(self, ends: str, depth: int) -> list[Any]:
        items: list[Any] = []
        while not self._ends(ends):
            items.append(self._value(depth))
            self._skip(_SPACE)
            if not self._text.startswith(ends, self._at):
                self._expect(",")
        return items

    def _mapping(self, depth: int) -> dict[str, Any]:
        self._expect("{")
        found: dict[str, Any] = {}
        while not self._ends("}"):
            key = self._value(depth)
            self._skip(_SPACE)
            self._expect(":")
            found[str(key)] = self._value(depth)
            self._skip(_SPACE)
            if not self._text.startswith("}", self._at):
                self._expect(",")
        return found

    def _ends(self, ends: str) -> bool:
        """Return whether a list ends here, and skip its bracket."""
        self._skip(_SPACE)
        if not ends:
            return self._at == len(self._text)
        if self._text.startswith(ends, self._at):
            self._at += 1
            return True
        return False

    def _skip(self, pattern: re.Pattern[str]) -> str | None:
        match = pattern.match(self._text, self._at)
        if match is None:
            return None
        self._at = match.end()
        return match[0]

    def _expect(self, sign: str) -> None:
        if not self._text.startswith(sign, self._at):
            raise _UnreadableError
        self._at += len(sign)


def _evaluate(shown: str) -> Any:
    try:
        value = ast.literal_eval(shown)
    except (ValueError, SyntaxError, MemoryError) as error:
        raise _UnreadableError from error
    return value.decode(errors="replace") if isinstance(value, bytes) else value


def _number(shown: str) -> Any:
    for kind in (int, float):
        try:
            return kind(shown)
        except ValueError:
            continue
    return shown
