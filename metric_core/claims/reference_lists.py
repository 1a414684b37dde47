r"""Find the notes and the list of references under a text, and which passages they name.

They are not statements, but define the labels of the text: `[1]: guide.md`, `[^a]: See guide.md, page 3.`, and
the lines under a heading such as "References" or "Quellen", whether they are numbered or not.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from metric_core.claims.cited_files import FILE_SUFFIXES, cited_file, page_of

_LIST_HEADINGS = (
    r"references?(?: list)?|list of references|bibliography|works cited|citations?|footnotes?|endnotes?|cited sources"
    r"|sources (?:cited|used|consulted)|quellenverzeichnis|quellenangaben?|literatur(?:verzeichnis|angaben)?"
    r"|einzelnachweise|referenzen|fu\u00dfnoten|r\u00e9f\u00e9rences|bibliographie|notes et r\u00e9f\u00e9rences"
    r"|referencias|bibliograf\u00eda|bibliografia|riferimenti|\u0938\u0902\u0926\u0930\u094d\u092d"
    r"(?: \u0938\u0942\u091a\u0940)?|\u0917\u094d\u0930\u0902\u0925 ?\u0938\u0942\u091a\u0940"
)
_OPEN_HEADINGS = r"sources?|source documents|quellen?|belege|fuentes?|fonti|\u0938\u094d\u0930\u094b\u0924"
"""Headings that lists of something else have, too, such as sources of energy."""

_HEADING = re.compile(rf"(?i)[^\w\n]{{0,12}}(?:(?P<closed>{_LIST_HEADINGS})|{_OPEN_HEADINGS})[^\w\n]{{0,8}}")
_LIST_IN_LINE = re.compile(
    rf"(?i)[^\w\n]{{0,12}}(?:{_LIST_HEADINGS}|{_OPEN_HEADINGS})[*_]{{0,3}}[ ]?:[*_]{{0,3}}[ \t]+(?P<list>\S.*)"
)
_COMMA = re.compile(r"[,;]")
_RULE = re.compile(r"[ \t]*(?:-{3,}|\*{3,}|_{3,})[ \t]*")
_SIGNS = "\u2070\u00b9\u00b2\u00b3\u2074-\u2079"
_ENTRY = re.compile(
    r"[ \t]*(?:[-*+\u2022][ \t]+)?(?:\[\^?(?P<name>[\w.-]{1,30})\]:?|\(?(?P<number>\d{1,3})[.):](?!\d)"
    rf"|<sup>(?P<raised>\d{{1,3}})</sup>|(?P<sign>[{_SIGNS}]{{1,3}}))[ \t]*(?P<text>\S.*)"
)
_BULLET = re.compile(r"[ \t]*[-*+\u2022][ \t]+(?P<text>\S.*)")
_NOTE = re.compile(r"[ \t]*(?:[-*][ \t]+)?\[\^?(?P<label>[\w.-]{1,30})\](?P<colon>:?)[ \t]+(?P<text>\S.*?)[ \t\r]*")
_TARGET = re.compile(rf"<?https?://\S+>?|[^\[\]\n]{{1,100}}\.{FILE_SUFFIXES}(?:\#\S{{0,60}})?", re.IGNORECASE)
_URL = re.compile(r"https?://[^\s<>()\[\]\"']{1,500}(?<![.,;:!?])")
_CITED = re.compile(rf"(?<=[\[,; ])\d{{1,3}}(?=[\],;\u2013-])|\[\^?[\w.-]{{1,30}}\]|[{_SIGNS}]{{1,3}}")
"""A label in the text."""

_CONTINUED = re.compile(r"[ ]{2,}\S|\t\S")
_DIGITS = str.maketrans("\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079", "0123456789")
_TRIED = 3
"""Number of entries after an ambiguous heading that are searched for one that shows a list of references."""


@dataclass(frozen=True, slots=True)
class References:
    """The notes and lists of references of a text.

    Args:
        spans: Start and end of each note or list, in order.
        targets: Label -> id of a context, file or URL that it is said to mean.
    """

    spans: tuple[tuple[int, int], ...] = ()
    targets: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


def find_references(text: str, ids: Collection[str] = ()) -> References:
    r"""Return the notes and lists of references of a text.

    >>> text = "It rains [1].\n\nReferences:\n1. Weather, https://example.org/w\n2. Climate"
    >>> found = find_references(text, ["http://example.org/w"])
    >>> [text[slice(*span)] for span in found.spans], found.targets
    (['References:\n1. Weather, https://example.org/w\n2. Climate'], {'1': 'https://example.org/w'})
    >>> find_references("There are two sources of energy.\n\nSources:\n1. Sun\n2. Wind").spans
    ()
    """
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    lines = [line.rstrip("\r\n") for line in lines]
    spans: list[tuple[int, int]] = []
    targets: dict[str, str] = {}
    pages = {page_of(name) for name in ids} - {None}
    first_cited: dict[str, int] = {}
    for match in _CITED.finditer(text):
        first_cited.setdefault(match[0].strip("[]^").translate(_DIGITS), match.start())
        first_cited.setdefault("", match.start())

    def cited_before(position: int) -> Callable[[str], bool]:
        return lambda label: first_cited.get(label, position) < position

    index, has_text = 0, False
    while index < len(lines):
        end = _list_end(lines, index, frozenset(ids), cited_before(starts[index])) if has_text else 0
        if not end:
            note = _NOTE.fullmatch(lines[index])
            if note and (note["colon"] or note["text"] in ids or _TARGET.fullmatch(note["text"])):
                end = _continued(lines, index + 1)
        if not end:
            has_text = has_text or bool(lines[index].strip())
            index += 1
            continue
        for line in lines[index:end]:
            label, entry = _read_entry(line)
            target = _target(entry, ids, pages)
            if label and target:
                targets.setdefault(label, target)
        first = index - 1 if index and _RULE.fullmatch(lines[index - 1]) else index
        spans.append((starts[first], starts[end - 1] + len(lines[end - 1])))
        index = end
    return References(tuple(spans), targets)


def _list_end(lines: Sequence[str], index: int, ids: Collection[str], is_cited: Callable[[str], bool]) -> int:
    """Return the index behind the last line of the list of references whose heading is a line; 0 if it is none."""
    inline = _LIST_IN_LINE.fullmatch(lines[index])
    if inline and _is_list(inline["list"].strip(), ids):
        return index + 1
    heading = _HEADING.fullmatch(lines[index])
    if heading is None or _BULLET.fullmatch(lines[index]):
        return 0
    end, entries = index + 1, list[str]()
    for position in range(index + 1, len(lines)):
        line = lines[position]
        if not line.strip():
            continue
        is_other_list = (
            bool(entries) and position > end and bool(_read_entry(line)[0]) != bool(_read_entry(entries[0])[0])
        )
        if is_other_list or not (_is_entry(line, ids) or (entries and position == end and _CONTINUED.match(line))):
            break
        entries.append(line)
        end = position + 1
    if heading["closed"] or any(_is_source(line, ids, is_cited) for line in entries[:_TRIED]):
        return end if entries else 0
    return end if entries and is_cited("") and not any(line.strip() for line in lines[end:]) else 0


def _is_list(content: str, ids: Collection[str]) -> bool:
    """Return whether what follows a heading in its line is a list: labels with titles, files, ids or other addresses.

    The address of a context is a marker of the sentence before it.
    """
    parts = [part.strip() for part in _COMMA.split(content)]
    if {page_of(part) for part in parts} & ({page_of(name) for name in ids} - {None}):
        return False
    return _NOTE.fullmatch(content) is not None or all(part in ids or _TARGET.fullmatch(part) for part in parts)


def _continued(lines: Sequence[str], index: int) -> int:
    """Return the index behind the indented lines that continue a note."""
    while index < len(lines) and _CONTINUED.match(lines[index]) and not _ENTRY.fullmatch(lines[index]):
        index += 1
    return index


def _is_entry(line: str, ids: Collection[str]) -> bool:
    if _ENTRY.fullmatch(line) or _BULLET.fullmatch(line):
        return True
    return line.strip() in ids or _TARGET.fullmatch(line.strip()) is not None


def _is_source(line: str, ids: Collection[str], is_cited: Callable[[str], bool]) -> bool:
    """Return whether an entry is a source: the text cites its label, or it names a file, an address or a context."""
    label, entry = _read_entry(line)
    is_named = entry in ids or _URL.search(entry) is not None or cited_file(entry) is not None
    return is_named or (bool(label) and is_cited(label))


def _read_entry(line: str) -> tuple[str, str]:
    """Return the label and the text of an entry; the label is empty where it has none."""
    entry = _ENTRY.fullmatch(line)
    if entry is None:
        bullet = _BULLET.fullmatch(line)
        return "", (bullet["text"] if bullet else line).strip()
    label = entry["name"] or entry["number"] or entry["raised"] or entry["sign"].translate(_DIGITS)
    return label, entry["text"].strip()


def _target(entry: str, ids: Collection[str], pages: Collection[str | None]) -> str | None:
    """Return the id, the URL of a context, or the file that an entry names; None if it names nothing."""
    if entry in ids:
        return entry
    urls = [url for url in _URL.findall(entry) if page_of(url) in pages]
    words = [name for name in ids if _is_word(name, entry)]
    return max(words, key=len, default=None) or (urls[0] if urls else cited_file(entry))


def _is_word(name: str, entry: str) -> bool:
    """Return whether an entry has an id as a separate word; a number does not count, because it can mean anything."""
    if len(name) == 1 or name.isdecimal() or name not in entry:
        return False
    return re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", entry) is not None
