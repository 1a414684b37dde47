"""Cut a text into statements whose words, values and names can be aligned with those of others."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from metric_core.disagreements.values import Value, find_values
from metric_core.words.lexicon import MONTHS, NEGATIONS, STOP_WORDS
from metric_core.words.tokens import stem

VALUE = "#"
"""Form of every value in a statement, so that other values in the same place are aligned."""

FUNCTION_WORDS = frozenset(map(stem, STOP_WORDS)) | STOP_WORDS

_END = re.compile(r"(?<=[.!?;])[\"')\]]*\s+(?=[\"'(\[]*[A-Z0-9])|\s*\n\s*|(?<=\.\.\.)\s+")
_ABBREVIATED = re.compile(
    r"\b(?:[A-Z]|Dr|Mr|Mrs|Ms|Prof|St|No|Inc|Jr|Sr|vs|e\.g|i\.e|approx|[Cc]a|Jan|Feb|Aug|Sept?|Oct|Nov|Dec)\.$"
)
_MONTHS = "|".join(month.capitalize() for month in MONTHS)
_NUMBERED = re.compile(rf"^\W*\d{{1,2}}(?:[.)\]:](?!\d)|(?= +(?!{_MONTHS})[A-Z]))\s*|\[\d{{1,3}}\]")
"""The number of an item before it, or of a source behind a sentence."""
_WORD = re.compile(r"[^\W_]+(?:['\u2019.-][^\W_]+)*")
_MOST_CHARACTERS = 600


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence, line or item of a text.

    Args:
        forms: Its words as stems, in order, and `VALUE` for each value.
        values: Place among the forms -> the value there, and how it is written.
        names: Place among the forms -> the capitalized word there, in lower case; not that which begins the statement,
            unless another one follows.
        content: Its stems without function words, negations and values.
    """

    text: str
    forms: tuple[str, ...]
    values: Mapping[int, tuple[Value, str]]
    names: Mapping[int, str]
    content: frozenset[str]


def split_statements(text: str) -> list[Statement]:
    """Return the statements of a text that say something: at least two words with content, or one and a value.

    >>> [each.forms for each in split_statements("Lunch is at noon. Staff get twenty-five days off! Thanks.")]
    [('lunch', 'is', 'at', '#'), ('staff', 'get', '#', 'off')]
    """
    read = map(read_statement, _sentences(text))
    return [each for each in read if len(each.content) + bool(each.values) > 1]


def read_statement(text: str) -> Statement:
    """Return a text as one statement."""
    plain = _NUMBERED.sub(lambda found: " " * len(found[0]), text[:_MOST_CHARACTERS])
    forms: list[str] = []
    values: dict[int, tuple[Value, str]] = {}
    names: dict[int, str] = {}
    at = 0
    for value in (*find_values(plain), None):
        words = _WORD.findall(plain, at, len(plain) if value is None else value.start)
        for place, word in enumerate(words):
            lower = word.replace("\u2019", "'").lower().removesuffix("'s").replace(".", "")
            if _is_name(word, lower) and (
                forms or any(_is_name(each, each.lower()) for each in words[place + 1 :][:1])
            ):
                names[len(forms)] = lower
            forms += _stems(lower)
        if value is not None:
            values[len(forms)] = value, plain[value.start : value.end].strip()
            forms.append(VALUE)
            at = value.end
    content = frozenset(form for form in forms if form != VALUE and form not in FUNCTION_WORDS | NEGATIONS)
    return Statement(text, tuple(forms), values, names, content)


def _is_name(word: str, lower: str) -> bool:
    return word[0].isupper() and lower not in STOP_WORDS


def _stems(word: str) -> list[str]:
    if word.endswith("n't") or word == "cannot":
        return [stem(word.removesuffix("n't").removesuffix("not")), "not"]
    return [stem(part) for part in word.split("-")]


def _sentences(text: str) -> Iterator[str]:
    begin = ""
    for part in _END.split(text):
        begin = f"{begin} {part}".strip()
        if not _ABBREVIATED.search(begin):
            yield begin
            begin = ""
    yield from [begin] if begin else []
