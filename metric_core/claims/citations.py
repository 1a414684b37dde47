r"""Find the citation markers of a text, such as [1], [doc-3], [^2] or 【4:0†source】, and the labels in them.

A marker says where a statement comes from; it is no part of the statement. Only forms that hardly occur otherwise
count: a number, a word with a number, a file name or the id of a retrieved context in brackets, and footnotes; further
ones by a pattern of the user's. What is written as code has no markers.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from metric_core.claims.citation_pattern import find_by_pattern
from metric_core.claims.cited_files import FILE_SUFFIXES, cited_file

_LINK = r"(?:\((?:https?://|/|\#)[^()\s]*\))?"
_NUMBERS = r"\d{1,3}(?:\s*[,;\u2013-]\s*\d{1,3})*"
_NAMED = r"[A-Za-z][A-Za-z_.:/ #-]{0,20}\d{1,6}"
_FILE = rf"[^\[\]\n]{{1,100}}\.{FILE_SUFFIXES}(?:\#[^\[\]\n]{{0,60}})?"
_SUPERSCRIPTS = "\u2070\u00b9\u00b2\u00b3\u2074-\u2079"

_FORMS = rf"""
    \[\^[\w.-]{{1,30}}\]                                  # [^4], [^note]
  | \[\[{_NUMBERS}\]\]{_LINK}                              # [[2]](https://...)
  | \[{_NUMBERS}\]{_LINK}(?!\s*=)                          # [2], [1, 3], [1](https://...), not x[0] = 1
  | [\uff3b\u3014]{_NUMBERS}[\uff3d\u3015]                   # brackets of Chinese and Japanese texts
  | <sup>\s*\[?{_NUMBERS}\]?\s*</sup>                       # <sup>2</sup>
  | \[{_NAMED}(?:\s*[,;]\s*{_NAMED})*\]{_LINK}             # [doc-3], [Source 2], [S1, S4]
  | \[{_FILE}\]                                           # [benefit plan.pdf#page=3]
  | \((?:source:\s*)?[^()\s]{{1,100}}\.{FILE_SUFFIXES}(?:\#[^()\n]{{0,60}})?\)   # (handbook.docx)
  | 【[^【】\n]{{1,100}}】                                  # 【4:0†source】
  | (?:(?<=[a-z]{{4}})|(?<=[.!?,;:"'\u201d)]))[{_SUPERSCRIPTS}]+(?=[\s.,;:)]|$)      # word¹, not m²
"""
_DEFINITION = re.compile(
    r"^[ \t]*(?:[-*][ \t]+)?\[\^?(?P<label>[\w.-]{1,30})\]:?[ \t]+(?P<text>\S.*?)[ \t]*$", re.MULTILINE
)
_BARE_TARGET = re.compile(rf"<?https?://\S+>?|[^\[\]\n]{{1,100}}\.{FILE_SUFFIXES}(?:\#\S{{0,60}})?", re.IGNORECASE)
_HEADING = re.compile(
    r"(?i)[ \t]*[#*_ ]*"
    r"(?:sources?|references?|citations?|footnotes?|quellen|fuentes|r\u00e9f\u00e9rences|fonti)"
    r"[*_ ]*:?[*_ \t]*\n"
)
_CODE = re.compile(r"(`{1,3})(?!`)[^`]{1,4000}\1(?!`)")
_RANGE = re.compile(r"(\d+)\s*[\u2013-]\s*(\d+)")
_TO = re.compile(r"[ \t]*[\u2013-][ \t]*")
_SEPARATOR = re.compile(r"[ \t]*(?:[,;\u3001\uff0c][ \t]*)?")
_DIGITS = str.maketrans("\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079", "0123456789")
_PARENTHESES = {"(": ")", "\uff08": "\uff09"}
_LONGEST_RANGE = 20


@dataclass(frozen=True, slots=True)
class Citation:
    """A citation marker in a text.

    Args:
        start: Position of its first character.
        end: Position after its last character.
        labels: Cited numbers, names or files, as written; empty for the text of a footnote. A footnote that names a
            retrieved context or a file has that label.
    """

    start: int
    end: int
    labels: tuple[str, ...]


def find_citations(text: str, ids: Collection[str] = (), pattern: str | None = None) -> list[Citation]:
    r"""Return the citation markers of a text, in order.

    Args:
        text: Text of a response or a reference.
        ids: Ids of the retrieved contexts, which are markers in brackets whatever their form.
        pattern: Further form of markers, see `metric_core.claims.citation_pattern`.

    >>> [(text.start, text.labels) for text in find_citations("It rains [1, 3]. It pours [doc-2].")]
    [(9, ('1', '3')), (26, ('doc-2',))]
    >>> find_citations("It rains [sic] on 5 m² of x[i], says `row[0]`.")
    []
    >>> [text.labels for text in find_citations("It rains.[^1]\n\n[^1]: weather.md, page 2", ["weather.md"])]
    [('weather.md',), ()]
    >>> [text.labels for text in find_citations("It rains (see note 7).", pattern=r"\(see note (\d+)\)")]
    [('7',)]
    """
    notes, targets = _definitions(text, ids)
    found = notes + [Citation(start, end, _split(label, ids)) for start, end, label in find_by_pattern(text, pattern)]
    forms = _pattern(tuple(sorted(ids, key=len, reverse=True)))
    found += [Citation(match.start(), match.end(), _labels(match[0], ids)) for match in forms.finditer(text)]
    code = [match.span() for match in _CODE.finditer(text)]
    chosen = _join_ranges(text, _without_overlaps(found, code))
    return [Citation(each.start, each.end, _follow(each.labels, targets)) for each in chosen]


@dataclass(frozen=True, slots=True)
class StrippedText:
    """A text without its citation markers, and where they were.

    Args:
        text: The text without markers, the white space before them, and the commas between them.
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


def strip_citations(text: str, ids: Collection[str] = (), pattern: str | None = None) -> StrippedText:
    """Return a text without its citation markers; see `find_citations`.

    >>> stripped = strip_citations("It rains [1]. It pours.[2] Take care¹.")
    >>> stripped.text, stripped.citations, stripped.origin(10)
    ('It rains. It pours. Take care.', ((8, ('1',)), (19, ('2',)), (29, ('1',))), 14)
    >>> strip_citations("It rains [1], [2]. It pours ([3]; [4]).").text
    'It rains. It pours.'
    """
    pieces: list[str] = []
    origins, citations = [(0, 0)], []
    length = done = 0
    for group in _adjacent(text, find_citations(text, ids, pattern)):
        start, end = _with_parentheses(text, group[0].start, group[-1].end)
        piece = text[done:start].rstrip(" \t\u00a0")
        pieces.append(piece)
        length += len(piece)
        done = end
        origins.append((length, done))
        citations += [(length, citation.labels) for citation in group]
    return StrippedText("".join([*pieces, text[done:]]), tuple(citations), tuple(origins))


def _definitions(text: str, ids: Collection[str]) -> tuple[list[Citation], dict[str, str]]:
    """Return the definitions of footnotes and lists of sources, and what they define labels as."""
    notes: list[Citation] = []
    targets: dict[str, str] = {}
    for match in _DEFINITION.finditer(text):
        label, note = match["label"], match["text"]
        has_colon = text[match.end("label") + 1 : match.end("label") + 2] == ":"
        if not (has_colon or note in ids or _BARE_TARGET.fullmatch(note)):
            continue
        if (named := _named_context(note, ids) or cited_file(note)) is not None:
            targets.setdefault(label, named)
        heading = max(
            (found.start() for found in _HEADING.finditer(text) if found.end() == match.start()), default=None
        )
        notes.append(Citation(match.start() if heading is None else heading, match.end(), ()))
    return notes, targets


def _named_context(note: str, ids: Collection[str]) -> str | None:
    """Return the id of a context that the text of a footnote is, or has as a word of its own."""
    if note in ids:
        return note
    words = [name for name in ids if len(name) > 1 and re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", note)]
    return max(words, key=len, default=None)


def _follow(labels: Iterable[str], targets: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(targets.get(label, label) for label in labels))


def _without_overlaps(found: Iterable[Citation], code: Sequence[tuple[int, int]]) -> list[Citation]:
    """Return the markers outside code, in order; of overlapping ones the first found."""
    chosen: list[Citation] = []
    for citation in found:
        taken = (*code, *((other.start, other.end) for other in chosen))
        if not any(start < citation.end and citation.start < end for start, end in taken):
            chosen.append(citation)
    return sorted(chosen, key=lambda citation: citation.start)


def _join_ranges(text: str, citations: Sequence[Citation]) -> list[Citation]:
    """Return the citations with "[1]-[3]" as one that cites 1, 2 and 3."""
    joined: list[Citation] = []
    for citation in citations:
        before = joined[-1] if joined else None
        if before is not None and before.labels and citation.labels and _TO.fullmatch(text, before.end, citation.start):
            between = _span(before.labels[-1], citation.labels[0])
            if between:
                labels = dict.fromkeys((*before.labels, *between, *citation.labels))
                joined[-1] = Citation(before.start, citation.end, tuple(labels))
                continue
        joined.append(citation)
    return joined


def _adjacent(text: str, citations: Iterable[Citation]) -> list[list[Citation]]:
    """Return the markers in groups that nothing but commas and spaces separates."""
    groups: list[list[Citation]] = []
    for citation in citations:
        if groups and _SEPARATOR.fullmatch(text, groups[-1][-1].end, citation.start):
            groups[-1].append(citation)
        else:
            groups.append([citation])
    return groups


def _with_parentheses(text: str, start: int, end: int) -> tuple[int, int]:
    is_enclosed = start > 0 and end < len(text) and text[end] == _PARENTHESES.get(text[start - 1])
    return (start - 1, end + 1) if is_enclosed else (start, end)


@lru_cache(maxsize=256)
def _pattern(ids: tuple[str, ...]) -> re.Pattern[str]:
    name = "|".join(re.escape(name) for name in ids if name.strip())
    known = rf" | \[(?:{name})(?:\s*[,;]\s*(?:{name}))*\]" if name else ""
    return re.compile(_FORMS + known, re.VERBOSE)


def _labels(marker: str, ids: Collection[str]) -> tuple[str, ...]:
    inner = re.sub(r"\]\(.*\)\Z", "]", marker)
    inner = re.sub(r"</?sup>", "", inner).strip().strip("[]()【】:\uff3b\uff3d\u3014\u3015")
    if inner in ids:
        return (inner,)
    inner = inner.removeprefix("^").translate(_DIGITS)
    return _split(re.sub(r"(?i)^source:\s*", "", inner), ids)


def _split(inner: str, ids: Collection[str]) -> tuple[str, ...]:
    """Return the labels of a list of labels, with the numbers of ranges."""
    if inner in ids:
        return (inner,)
    labels: list[str] = []
    for part in re.split(r"\s*[,;]\s*", inner):
        span = _RANGE.fullmatch(part)
        numbers = _span(span[1], span[2]) if span else ()
        if numbers:
            labels += numbers
        elif part.strip():
            labels.append(part.strip())
    return tuple(dict.fromkeys(labels))


def _span(first: str, last: str) -> tuple[str, ...]:
    """Return the numbers from one to another; none if that is no short range."""
    if not (first.isdecimal() and last.isdecimal() and 0 <= int(last) - int(first) < _LONGEST_RANGE):
        return ()
    return tuple(map(str, range(int(first), int(last) + 1)))
