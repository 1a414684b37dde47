r"""Declare the forms of citation markers: what each looks like, and what its labels name.

One table, `FORMS`, is what the search, the guide of the metrics and the tests read. A form that also occurs in other
text, such as a number in brackets, counts only where `metric_core.claims.citation_evidence` says so.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache

from metric_core.claims.cited_files import FILE_SUFFIXES

CONJUNCTION = r"(?:as well as|and|or|und|sowie|oder|et|ou|ainsi que|y|e|o|\u0914\u0930|\u0924\u0925\u093e|&)"
"""Words between two markers, in English, German, French, Spanish and Hindi."""

CITED_WORDS = (
    r"documentos?|documents?|dokumente?|docs?|sources?|srcs?|references?|refs?|referencias?|r\u00e9f\u00e9rences?"
    r"|contexts?|contextes?|contextos?|kontexte?|ctx|passages?|pasajes?|chunks?|snippets?|excerpts?|extraits?"
    r"|quellen?|belege?|fuentes?|fonti|fonte"
    r"|\u0938\u094d\u0930\u094b\u0924|\u0926\u0938\u094d\u0924\u093e\u0935\u0947\u091c\u093c?"
    r"|\u0938\u0902\u0926\u0930\u094d\u092d"
)
"""Words for a passage, in English, German, French, Spanish, Italian and Hindi, as a regular expression."""

_BRACKETED_WORDS = (
    rf"{CITED_WORDS}|results?|citations?|cites?|footnotes?|notes?|fn|fu\u00dfnoten?|notas?|evidence|[cdsp](?=[-_:#]?\d)"
)
NUMBERED = re.compile(rf"(?i)(?:{_BRACKETED_WORDS})?[-_ :.#/]*(\d+)\Z")
"""A number, alone or after a word for a passage."""

_PAGE = r"pages?|pp?|seiten?|s|p\u00e1ginas?|p\u00e1gs?|\u092a\u0943\u0937\u094d\u0920|\u092a\u0943"
_AT_WORD = (
    rf"[ ,:]{{1,3}}(?:(?i:{_PAGE}|sections?|sec|chapters?|chap|ch|kapitel|kap|abschnitt|lines?|zeilen?|paragraphs?"
    r"|paras?|abs|art)(?:\.[ ]?|[ ])|\u00a7[ ]?)"
)
_AT_NUMBER, _AND_AFTER = r"\d[\w.\u2013-]{0,12}", r"(?:[ ]?ff?\.?)?"
_AT = _AT_WORD + _AT_NUMBER + _AND_AFTER
_BETWEEN = rf"[ \t]{{0,3}}(?:[,;\u3001\uff0c][ \t]{{0,3}}(?:{CONJUNCTION}[ \t])?|[ \t]{CONJUNCTION}[ \t])[ \t]{{0,3}}"
_TO = r"[ \t]?[\u2013-][ \t]?"
_NUMBER = rf"\d{{1,3}}(?:{_TO}\d{{1,3}})?(?!\d)"
_PLACE = rf"{_NUMBER}(?:{_AT})?"
_NUMBERS = rf"{_PLACE}(?:{_BETWEEN}{_PLACE})*"
_BEHIND_WORD = rf"[-_ :.#/]{{0,3}}\d{{1,6}}(?:{_TO}\d{{1,6}})?(?!\d)"
_NAMED = rf"(?:(?i:{_BRACKETED_WORDS}){_BEHIND_WORD}|{_NUMBER})(?:{_AT})?"
_SAID = rf"(?:(?i:{CITED_WORDS}){_BEHIND_WORD}|{_NUMBER})(?:{_AT})?"
_FILE = rf"\.{FILE_SUFFIXES}(?:\#[^\[\]()\n]{{0,60}})?(?:{_AT})?"
_TARGET = r"(?:https?://|/|\#)[^()\s]{0,500}"
_LINK = rf"(?:\({_TARGET}\))?(?!\([a-z]{{2,10}}:[^\s)]|\([^()\s]{{1,100}}\.[a-z]{{2,5}}\))"
_KEY = r"-?@[\w:.#$%&+?<>~/-]{1,60}"
_SUPERSCRIPT = "[\u2070\u00b9\u00b2\u00b3\u2074-\u2079]{1,4}"
_DIGITS = str.maketrans("\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079\u207b", "0123456789-")
_LONGEST_RANGE = 20


@dataclass(frozen=True, slots=True)
class CitationForm:
    """A form of citation markers.

    Args:
        name: Its name, a Python identifier.
        pattern: Regular expression, with one group around the labels.
        example: A marker of the form.
        labels: The labels of the example.
        names: Description of the contexts that a label names.
    """

    name: str
    pattern: str
    example: str
    labels: tuple[str, ...]
    names: str


_BY_NUMBER = "the context of that number"
_BY_NOTE = "what the note or the list of references says, else the context of that number"
_BY_FILE = "the context with that id, else all contexts of the file"
_BY_URL = "the contexts whose id is the URL; without one, it is not a citation"
_BY_ID = "the context with that id"

FORMS = (
    CitationForm("footnote", r"\[\^([\w.-]{1,30})\]", "[^2]", ("2",), _BY_NOTE),
    CitationForm("nested", rf"\[\[({_NUMBERS})\]\]{_LINK}", "[[2]](https://example.org)", ("2",), _BY_NUMBER),
    CitationForm("number", rf"\[({_NUMBERS})\]{_LINK}", "[1, 3]", ("1", "3"), _BY_NOTE),
    CitationForm("wide", rf"[\uff3b\u3014]({_NUMBERS})[\uff3d\u3015]", "\uff3b2\uff3d", ("2",), _BY_NUMBER),
    CitationForm(
        "named",
        rf"\[((?=[^\W\d]){_NAMED}(?:{_BETWEEN}{_NAMED})*)\]{_LINK}",
        "[doc-3, doc-4]",
        ("doc-3", "doc-4"),
        _BY_NUMBER,
    ),
    CitationForm(
        "file", rf"\[([^\[\]\n]{{1,100}}{_FILE})\]{_LINK}", "[plan.pdf, p. 3]", ("plan.pdf#page=3",), _BY_FILE
    ),
    CitationForm("key", rf"\[({_KEY}[^\[\]\n]{{0,100}})\]", "[@smith, p. 3; @lee]", ("smith", "lee"), _BY_ID),
    CitationForm(
        "link",
        r"\[[^\[\]\n]{1,200}\]\((https?://[^()\s]{1,500})\)",
        "[Title](https://example.org/a)",
        ("https://example.org/a",),
        _BY_URL,
    ),
    CitationForm(
        "lenticular",
        "\u3010([^\u3010\u3011\n]{1,100})\u3011",
        "\u30104:0\u2020source\u3011",
        ("4:0\u2020source",),
        "the file, else the result of that index from 0",
    ),
    CitationForm("said", rf"\(((?=[^\W\d]){_SAID}(?:{_BETWEEN}{_SAID})*)\)", "(Source 1)", ("Source 1",), _BY_NUMBER),
    CitationForm("parenthesis", rf"(?<!\])\((\d{{1,3}}(?:{_BETWEEN}\d{{1,3}})*)\)", "(2)", ("2",), _BY_NUMBER),
    CitationForm(
        "file_said",
        rf"(?:\((?i:sources?|quellen?|fuentes?):[ ]?|(?<!\])\()([^()\s]{{1,100}}{_FILE})\)",
        "(source: leave.docx)",
        ("leave.docx",),
        _BY_FILE,
    ),
    CitationForm(
        "cite", rf"<cite>\s?\[?({_NAMED}(?:{_BETWEEN}{_NAMED})*)\]?\s?</cite>", "<cite>1</cite>", ("1",), _BY_NUMBER
    ),
    CitationForm("raised", rf"<sup>\s?\[?({_NUMBERS})\]?\s?</sup>", "<sup>2</sup>", ("2",), _BY_NOTE),
    CitationForm(
        "superscript",
        rf"(?:(?<=[^\W\d_])|(?<=[.!?,;:%\"'\u201d\u2019\u00bb\u3002)\]]))"
        rf"({_SUPERSCRIPT}(?:[,\u207b][ ]?{_SUPERSCRIPT})*)(?=[\s.,;:!?)\u3002]|$)",
        "\u00b9,\u00b2",
        ("1", "2"),
        _BY_NOTE,
    ),
    CitationForm(
        "latex",
        r"~?\\(?:auto|foot|paren|text)?cite[a-z]{0,6}\*?(?:\[[^\[\]\n]{0,60}\]){0,2}\{([^{}\n]{1,200})\}",
        r"\citep[p. 3]{smith,lee}",
        ("smith", "lee"),
        _BY_ID,
    ),
    CitationForm(
        "url",
        r"(?<![\w\"'=/])(?<!\]\()<?(https?://[^\s<>()\[\]\"']{1,500}(?<![.,;:!?*_]))>?",
        "https://example.org/a",
        ("https://example.org/a",),
        _BY_URL,
    ),
)
"""The forms of citation markers, besides ids of contexts in brackets and the pattern of the user's."""

_BEGINNING = re.compile(r"[(\[<\\\u3010\u3014\uff3b\u2070\u00b9\u00b2\u00b3\u2074-\u2079]|://")
"""The first characters of markers; of a URL, those that other texts lack."""

_COMMA = re.compile(r"\s*[,;\u3001\uff0c]\s*")
_COMMA_OR_WORD = re.compile(rf"\s*[,;\u3001\uff0c]\s*(?:{CONJUNCTION}\s)?|\s{CONJUNCTION}\s")
_WITH_WORDS = {"nested", "number", "wide", "named", "said", "parenthesis", "cite", "raised"}
_KEYS = re.compile(r"@([\w:.#$%&+?<>~/-]{0,59}\w)")
_PLACE_AT = re.compile(rf"{_AT_WORD}({_AT_NUMBER}){_AND_AFTER}")
_PAGE_WORD = re.compile(rf"(?i)[ ,:]+(?:{_PAGE})[. ]")
_IS_FILE = re.compile(rf"(?i)\.{FILE_SUFFIXES}\Z")
_RANGE = re.compile(r"(?:[^\W\d][^\d]*)?(\d+)\s?[\u2013-]\s?(\d+)")


@dataclass(frozen=True, slots=True)
class FoundForm:
    """A part of a text that has the form of a marker.

    Args:
        start: Position of its first character.
        end: Position after its last character.
        target: Target of a link; empty without one.
    """

    form: str
    start: int
    end: int
    labels: tuple[str, ...]
    target: str = ""


def may_hold_forms(text: str) -> bool:
    """Return whether a text has characters that markers begin with; most claims have none, as this quickly shows.

    >>> may_hold_forms("It rains."), may_hold_forms("It rains [1].")
    (False, True)
    """
    return _BEGINNING.search(text) is not None


def find_forms(text: str, ids: Collection[str] = ()) -> list[FoundForm]:
    """Return what has the form of a marker, in order.

    >>> [(found.form, found.labels) for found in find_forms("It rains [1, p. 7] on x[2 and 3] (Source 4).")]
    [('number', ('1',)), ('number', ('2', '3')), ('said', ('Source 4',))]
    """
    if not may_hold_forms(text):
        return []
    found, any_form = [], _any_form()
    for match in any_form.finditer(text):
        form = match.lastgroup or ""
        content = match[any_form.groupindex[form] + 1]
        target = match[0].partition("](")[2].removesuffix(")") if form != "url" else ""
        found.append(FoundForm(form, *match.span(), read_citation_labels(content, ids, form), target))
    return found


@cache
def _any_form() -> re.Pattern[str]:
    """Return a pattern of all forms, compiled at its first use since that takes long."""
    return re.compile("|".join(f"(?P<{form.name}>{form.pattern})" for form in FORMS))


def read_citation_labels(content: str, ids: Collection[str] = (), form: str = "") -> tuple[str, ...]:
    """Return the labels of a list of labels, with the numbers of ranges; only files keep the page.

    >>> read_citation_labels("1-3, p. 12; 5", form="number"), read_citation_labels("Docs 2 and 4", form="named")
    (('1', '2', '3', '5'), ('Docs 2', '4'))
    >>> read_citation_labels("plan.pdf, p. 3"), read_citation_labels("a, b", ["a, b"])
    (('plan.pdf#page=3',), ('a, b',))
    """
    if content in ids or form in ("link", "url"):
        return (content,)
    if form == "key":
        return tuple(dict.fromkeys(_KEYS.findall(content)))
    content = content.translate(_DIGITS) if form == "superscript" else _PLACE_AT.sub(_page, content)
    separator = _COMMA_OR_WORD if form in _WITH_WORDS else _COMMA
    parts = [part.strip() for part in separator.split(content)]
    return tuple(dict.fromkeys(label for part in parts if part for label in _expand(part)))


def span_labels(first: str, last: str) -> tuple[str, ...]:
    """Return the numbers from one to another; none if the range is not short."""
    if not (first.isdecimal() and last.isdecimal() and 0 <= int(last) - int(first) < _LONGEST_RANGE):
        return ()
    return tuple(map(str, range(int(first), int(last) + 1)))


def _expand(part: str) -> tuple[str, ...]:
    span = _RANGE.fullmatch(part)
    return (span_labels(span[1], span[2]) if span else ()) or (part,)


def _page(locator: re.Match[str]) -> str:
    """Return the page of a file as its fragment; nothing for other places, which no label names."""
    is_page = _PAGE_WORD.match(locator[0]) and _IS_FILE.search(locator.string[: locator.start()])
    return f"#page={locator[1]}" if is_page else ""
