r"""Find the citation markers of a text, such as [1], [doc-3], [^2] or 【4:0†source】, and the labels in them.

A marker says where a statement comes from; it is not part of the statement. `metric_core.claims.citation_forms`
declares the forms, and `metric_core.claims.citation_evidence` distinguishes citations from other numbers in brackets.
Ids of the retrieved contexts in brackets are markers, too, and what a pattern of the user's finds. Code and formulas
have none.
"""

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Protocol, TypeVar

from metric_core.claims.citation_cuts import is_part_of_sentence, separates, stands_alone, trim, widen
from metric_core.claims.citation_evidence import keep_citations
from metric_core.claims.citation_forms import (
    FoundForm,
    find_forms,
    may_hold_forms,
    read_citation_labels,
    span_labels,
)
from metric_core.claims.citation_pattern import find_by_pattern
from metric_core.claims.reference_lists import find_references

_BRACKETS = re.compile(r"\[([^\[\]\n]{1,200})\]")
_NUMBERS_ONLY = re.compile(r"(?:\d{1,3}(?!\d)|[\s,;\u2013-])+")
_STEM = re.compile(r"([^\W\d].*?[-_:./#]?)\d+\Z")
_TO = re.compile(r"[ \t]*[\u2013-][ \t]*|[ \t](?:to|through|bis|\u00e0|hasta)[ \t]")
_UNREAD = re.compile(
    r"""
    ^[ ]{0,3}(?P<fence>`{3,}(?=[^`\n]*$)|~{3,})[^\n]*              # ```python ... ```, up to the end where it is open
      (?:\n(?![ ]{0,3}(?P=fence))[^\n]*)*(?:\n[ ]{0,3}(?P=fence)[^\n]*)?
  | (?P<ticks>`{1,3})(?!`)[^`]{1,4000}(?P=ticks)(?!`)              # `row[0]`
  | <(?P<tag>code|pre|math)\b[^<>]{0,100}>(?:[^<]|<(?!/?(?P=tag)\b))*</(?P=tag)>
  | \$\$[^$]{1,2000}\$\$
  | (?<![\w$\\])\$(?![\s$])[^$\n]{1,300}(?<![\s\\])\$(?![\d$])     # $x \in [0, 1]$, not 5 $ and 6 $
  | \\\((?:[^\\\n]|\\[^()\n])*\\\)                                 # \(x \in [0, 1]\)
  | \\\[(?:[^\\]|\\[^\[\]])*\\\]
  | \[\s*\[[\d.+-]+[,;\s][\d\s.,;+-]*\](?:[\s,;]*\[[\d\s.,;+-]*\])+\s*\]       # [[1, 2], [3, 4]]
    """,
    re.VERBOSE | re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Citation:
    """A citation marker in a text.

    Args:
        start: Position of its first character.
        end: Position after its last character.
        labels: Cited numbers, names or files, as written; empty for the text of a footnote and a list of references. A
            label that a note or a list of references explains is the context or the file that it names.
        is_link: True for a URL, and for a link with a title, which may be words of a sentence.
    """

    start: int
    end: int
    labels: tuple[str, ...]
    is_link: bool = False


def find_citations(
    text: str, ids: Collection[str] = (), pattern: str | None = None, passages: int | None = None
) -> list[Citation]:
    r"""Return the citation markers of a text, in order.

    Args:
        text: Text of a response or a reference.
        ids: Ids of the retrieved contexts, which are markers in brackets whatever their form.
        pattern: Further form of markers, see `metric_core.claims.citation_pattern`.
        passages: Number of retrieved contexts; None if it is not known.

    >>> [(text.start, text.labels) for text in find_citations("It rains [1, 3]. It pours [doc-2].")]
    [(9, ('1', '3')), (26, ('doc-2',))]
    >>> find_citations("It rains [sic] on 5 m² of x[i], says `row[0]`, with p in [0, 1].")
    []
    >>> [text.labels for text in find_citations("It rains.[^1]\n\n[^1]: weather.md, page 2", ["weather.md"])]
    [('weather.md',), ()]
    >>> [text.labels for text in find_citations("It rains (see note 7).", pattern=r"\(see note (\d+)\)")]
    [('7',)]
    """
    if pattern is None and not may_hold_forms(text) and len(text.splitlines()) < 2:
        return []  # a list of references is below a text
    known = frozenset(ids)
    unread = unread_spans(text)
    references = find_references(text, known)
    starts_unread = _outside([Citation(start, start + 1, ()) for start, _ in references.spans], unread)
    ends = dict(references.spans)
    chosen = [Citation(each.start, ends[each.start], ()) for each in starts_unread]
    taken = sorted([*unread, *_spans(chosen)])
    chosen += _outside(
        [
            Citation(start, end, read_citation_labels(label, known))
            for start, end, label in find_by_pattern(text, pattern)
        ],
        taken,
    )
    taken = sorted([*unread, *_spans(chosen)])
    forms = _outside(_find_ids(text, known), taken)
    forms += _outside(find_forms(text, known), sorted([*taken, *_spans(forms)]))
    forms.sort(key=lambda each: each.start)
    kept = keep_citations(text, forms, known, passages)
    chosen += [Citation(each.start, each.end, each.labels, each.form in ("link", "url")) for each in kept]
    joined = _join_ranges(text, sorted(chosen, key=lambda each: each.start))
    return [replace(each, labels=_follow(each.labels, references.targets)) for each in joined]


@dataclass(frozen=True, slots=True)
class StrippedText:
    """A text without its citation markers, and where they were.

    Args:
        text: The text without markers, the white space before them, and what only joins or introduces them.
        citations: Position in that text, and labels, of each marker.
        origins: Position in that text -> position in the original text, at the start of each part between markers.
    """

    text: str
    citations: tuple[tuple[int, tuple[str, ...]], ...] = ()
    origins: tuple[tuple[int, int], ...] = ((0, 0),)

    def origin(self, position: int) -> int:
        """Return the position in the original text of a character."""
        start, original = self.origins[bisect_right(self.origins, position, key=itemgetter(0)) - 1]
        return original + position - start


def strip_citations(
    text: str, ids: Collection[str] = (), pattern: str | None = None, passages: int | None = None
) -> StrippedText:
    """Return a text without its citation markers; see `find_citations`.

    A marker that a sentence needs as a word stays where it is, as do links within a sentence.

    >>> stripped = strip_citations("It rains [1]. It pours.[2] Take care¹.")
    >>> stripped.text, stripped.citations, stripped.origin(10)
    ('It rains. It pours. Take care.', ((8, ('1',)), (19, ('2',)), (29, ('1',))), 14)
    >>> strip_citations("It rains [1], [2]. It pours ([3] and [4]). It snows (see [5]).").text
    'It rains. It pours. It snows.'
    >>> strip_citations("As the table in [1] shows, it rains [2].").text
    'As the table in [1] shows, it rains.'
    """
    pieces: list[str] = []
    origins, citations = [(0, 0)], []
    length = done = 0
    for cut in _cuts(text, find_citations(text, ids, pattern, passages)):
        piece, goes_on = text[done : max(done, cut.start)], cut.end
        if cut.start < cut.end:
            piece, goes_on = trim(piece, text, cut.end)
        pieces.append(piece)
        length += len(piece)
        done = goes_on
        origins.append((length, done))
        citations += [(length, citation.labels) for citation in cut.citations]
    return StrippedText("".join([*pieces, text[done:]]), tuple(citations), tuple(origins))


@dataclass(frozen=True, slots=True)
class _Cut:
    """Markers, and what is cut with them: nothing where a sentence needs them."""

    start: int
    end: int
    citations: tuple[Citation, ...]

    def joins(self, other: "_Cut") -> bool:
        """Return whether both are cut, and are links or not."""
        is_link = self.citations[0].is_link is other.citations[0].is_link
        return is_link and self.start < self.end <= other.start < other.end


def _cuts(text: str, citations: Iterable[Citation]) -> list[_Cut]:
    """Return what is cut with the markers, in order."""
    cuts: list[_Cut] = []
    for group in _adjacent(text, [_Cut(each.start, each.end, (each,)) for each in citations]):
        floor = cuts[-1].end if cuts else 0
        if not any(each.labels for each in group.citations):
            cuts.append(group)
        elif _stays(text, group):
            cuts.append(_Cut(group.end, group.end, group.citations))
        else:
            cuts.append(_Cut(*widen(text, group.start, group.end, floor), group.citations))
    return _adjacent(text, cuts)


def _stays(text: str, group: _Cut) -> bool:
    if group.citations[0].is_link:
        return not stands_alone(text, group.start, group.end)
    return is_part_of_sentence(text, group.start, group.end)


def _adjacent(text: str, cuts: Iterable[_Cut]) -> list[_Cut]:
    """Return the cuts with those as one that nothing but commas, conjunctions and spaces separates."""
    groups: list[list[_Cut]] = []
    for cut in cuts:
        before = groups[-1][-1] if groups else None
        if before is not None and before.joins(cut) and separates(text, before.end, cut.start):
            groups[-1].append(cut)
        else:
            groups.append([cut])
    return [
        _Cut(group[0].start, group[-1].end, tuple(each for cut in group for each in cut.citations)) for group in groups
    ]


def _find_ids(text: str, ids: Collection[str]) -> list[FoundForm]:
    """Return the ids in brackets, and numbers in brackets with the stem of an id, in order."""
    if not ids:
        return []
    stems = {stem[1].casefold() for name in ids if (stem := _STEM.fullmatch(name))}
    found = []
    for match in _BRACKETS.finditer(text):
        labels = read_citation_labels(match[1], ids, "id")
        known = [label in ids for label in labels]
        if not labels or _NUMBERS_ONLY.fullmatch(match[1]):
            continue
        alike = [(stem := _STEM.fullmatch(label)) is not None and stem[1].casefold() in stems for label in labels]
        if all(one or other for one, other in zip(known, alike, strict=True)):
            found.append(FoundForm("id", *match.span(), labels))
    for name in (name for name in ids if set("[]\n") & set(name)):
        found += [
            FoundForm("id", match.start(), match.end(), (name,)) for match in re.finditer(re.escape(f"[{name}]"), text)
        ]
    return sorted(found, key=lambda each: each.start)


class _Spanning(Protocol):
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...


_S = TypeVar("_S", bound=_Spanning)


def _outside(found: Iterable[_S], taken: Sequence[tuple[int, int]]) -> list[_S]:
    """Return those that overlap nothing that is taken; both are in order."""
    free: list[_S] = []
    index = reach = 0
    for each in found:
        while index < len(taken) and taken[index][0] < each.end:
            reach = max(reach, taken[index][1])
            index += 1
        if reach <= each.start:
            free.append(each)
    return free


def _spans(found: Iterable[_Spanning]) -> list[tuple[int, int]]:
    return [(each.start, each.end) for each in found]


def _follow(labels: Iterable[str], targets: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(targets.get(label, label) for label in labels))


def _join_ranges(text: str, citations: Sequence[Citation]) -> list[Citation]:
    """Return the citations with "[1]-[3]" as one that cites 1, 2 and 3."""
    joined: list[Citation] = []
    for citation in citations:
        before = joined[-1] if joined else None
        if before is not None and before.labels and citation.labels and _TO.fullmatch(text, before.end, citation.start):
            between = span_labels(before.labels[-1], citation.labels[0])
            if between:
                labels = dict.fromkeys((*before.labels, *between, *citation.labels))
                joined[-1] = Citation(before.start, citation.end, tuple(labels))
                continue
        joined.append(citation)
    return joined


def unread_spans(text: str) -> list[tuple[int, int]]:
    r"""Return start and end of each part of a text in which nothing is a citation, in order.

    >>> [text[slice(*span)] for text in ["Of `x[1]` and $y \\in [2, 3]$, 5 $ [4]."] for span in unread_spans(text)]
    ['`x[1]`', '$y \\in [2, 3]$']
    """
    return [match.span() for match in _UNREAD.finditer(text)]
