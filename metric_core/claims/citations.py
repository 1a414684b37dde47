r"""Find the citation markers of a text, such as [1], [doc-3], [^2] or 【4:0†source】, and the contexts that they name.

A marker says where a statement comes from; it is no part of the statement. Only forms that hardly occur otherwise
count: a number, a word with a number, a file name or the id of a retrieved context in brackets, and footnotes.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache

from metric_core.records import Sample

_LINK = r"(?:\((?:https?://|/|\#)[^()\s]*\))?"
_SUFFIXES = r"(?:pdf|html?|docx?|md|txt|csv|pptx?|xlsx?|json|yaml|yml|rst|tex)"
_NUMBERS = r"\d{1,3}(?:\s*[,;\u2013-]\s*\d{1,3})*"
_NAMED = r"[A-Za-z][A-Za-z_.:/ #-]{0,20}\d{1,6}"
_FILE = rf"[^\[\]\n]{{1,100}}\.{_SUFFIXES}(?:\#[^\[\]\n]{{0,60}})?"
_SUPERSCRIPTS = "\u2070\u00b9\u00b2\u00b3\u2074-\u2079"

_FORMS = rf"""
    \[\^[\w.-]{{1,30}}\]                                  # [^4], [^note]
  | \[{_NUMBERS}\]{_LINK}(?!\s*=)                          # [2], [1, 3], [1](https://...), not x[0] = 1
  | \[{_NAMED}(?:\s*[,;]\s*{_NAMED})*\]{_LINK}             # [doc-3], [Source 2], [S1, S4]
  | \[{_FILE}\]                                           # [benefit plan.pdf#page=3]
  | \((?:source:\s*)?[^()\s]{{1,100}}\.{_SUFFIXES}(?:\#[^()\n]{{0,60}})?\)   # (handbook.docx)
  | 【[^【】\n]{{1,100}}】                                  # 【4:0†source】
  | (?:(?<=[a-z]{{4}})|(?<=[.!?,;:"'\u201d)]))[{_SUPERSCRIPTS}]+(?=[\s.,;:)]|$)      # word¹, not m²
"""
_DEFINITION = re.compile(r"^[ \t]*\[\^?[\w.-]{1,30}\]:[ \t].*$", re.MULTILINE)
_RANGE = re.compile(r"(\d+)\s*[\u2013-]\s*(\d+)")
_DIGITS = str.maketrans("\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079", "0123456789")
_NUMBERED = re.compile(
    r"(?i)(?:doc|document|source|src|ref|reference|context|ctx|passage|chunk|footnote|note|[cds])?[-_ :.#]*(\d+)\Z"
)
_LONGEST_RANGE = 20


@dataclass(frozen=True, slots=True)
class Citation:
    """A citation marker in a text.

    Args:
        start: Position of its first character.
        end: Position after its last character.
        labels: Cited numbers, names or files, as written; empty for the text of a footnote.
    """

    start: int
    end: int
    labels: tuple[str, ...]


def find_citations(text: str, ids: Collection[str] = ()) -> list[Citation]:
    """Return the citation markers of a text, in order.

    Args:
        text: Text of a response or a reference.
        ids: Ids of the retrieved contexts, which are markers in brackets whatever their form.

    >>> [(text.start, text.labels) for text in find_citations("It rains [1, 3]. It pours [doc-2].")]
    [(9, ('1', '3')), (26, ('doc-2',))]
    >>> find_citations("It rains [sic] on 5 m² of x[i].")
    []
    """
    notes = [Citation(note.start(), note.end(), ()) for note in _DEFINITION.finditer(text)]
    found = list(notes)
    found += [
        Citation(match.start(), match.end(), _labels(match[0], ids))
        for match in _pattern(tuple(sorted(ids, key=len, reverse=True))).finditer(text)
        if not any(note.start <= match.start() < note.end for note in notes)
    ]
    return sorted(found, key=lambda citation: citation.start)


@dataclass(frozen=True, slots=True)
class StrippedText:
    """A text without its citation markers, and where they were.

    Args:
        text: The text without markers and the white space before them.
        citations: Position in that text, and labels, of each marker.
        origins: Position in that text -> position in the original text, at the start of each part between markers.
    """

    text: str
    citations: tuple[tuple[int, tuple[str, ...]], ...] = ()
    origins: tuple[tuple[int, int], ...] = ((0, 0),)

    def origin(self, position: int) -> int:
        """Return the position in the original text of a character."""
        start, original = next(pair for pair in reversed(self.origins) if pair[0] <= position)
        return original + position - start


def strip_citations(text: str, ids: Collection[str] = ()) -> StrippedText:
    """Return a text without its citation markers; see `find_citations`.

    >>> stripped = strip_citations("It rains [1]. It pours.[2] Take care¹.")
    >>> stripped.text, stripped.citations, stripped.origin(10)
    ('It rains. It pours. Take care.', ((8, ('1',)), (19, ('2',)), (29, ('1',))), 14)
    """
    pieces: list[str] = []
    origins, citations = [(0, 0)], []
    length = done = 0
    for citation in find_citations(text, ids):
        piece = text[done : citation.start].rstrip(" \t\u00a0")
        pieces.append(piece)
        length += len(piece)
        done = citation.end
        origins.append((length, done))
        citations.append((length, citation.labels))
    return StrippedText("".join([*pieces, text[done:]]), tuple(citations), tuple(origins))


def cited_contexts(labels: Collection[str], sample: Sample) -> tuple[int, ...]:
    """Return the indices of the retrieved contexts that labels cite, in ascending order.

    A label that is the id of a context names it; otherwise a number k, alone or after a word such as "doc", names the
    k-th context. Labels that name no context are left out.

    >>> row = Sample(retrieved_contexts=("a", "b", "c"), retrieved_context_ids=("x9", "intro", "z"))
    >>> cited_contexts(("1", "doc-3", "intro", "7"), row)
    (0, 1, 2)
    """
    ids = [str(name) for name in sample.retrieved_context_ids or ()]
    count = len(sample.retrieved_contexts or ())
    cited = set()
    for label in labels:
        if label in ids:
            cited.add(ids.index(label))
        elif (numbered := _NUMBERED.match(label)) and 1 <= int(numbered[1]) <= count:
            cited.add(int(numbered[1]) - 1)
    return tuple(sorted(index for index in cited if index < count))


@lru_cache(maxsize=256)
def _pattern(ids: tuple[str, ...]) -> re.Pattern[str]:
    known = "".join(rf" | \[{re.escape(name)}\]" for name in ids if name.strip())
    return re.compile(_FORMS + known, re.VERBOSE)


def _labels(marker: str, ids: Collection[str]) -> tuple[str, ...]:
    inner = re.sub(r"\]\(.*\)\Z", "]", marker).strip("[]()【】:")
    if inner in ids:
        return (inner,)
    inner = inner.removeprefix("^").translate(_DIGITS)
    inner = re.sub(r"(?i)^source:\s*", "", inner)
    labels: list[str] = []
    for part in re.split(r"\s*[,;]\s*", inner):
        span = _RANGE.fullmatch(part)
        if span and 0 <= int(span[2]) - int(span[1]) < _LONGEST_RANGE:
            labels += map(str, range(int(span[1]), int(span[2]) + 1))
        elif part.strip():
            labels.append(part.strip())
    return tuple(dict.fromkeys(labels))
