"""Split plain text at its layout: paragraphs, headings, list items and citations, which sentences do not cross."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tasks.models.recognizers.scripts import SENTENCE_ENDS, has_no_stops, is_latin, is_letter

_POINTER = (
    r"(?i:\[[^\[\]\s][^\[\]]*\.\w{2,5}(?:#[^\[\]]*)?\]"  # [benefit plan.pdf#page=3]
    r"|\((?:source: *)?[^()\s]+\.(?:pdf|html?|docx?|md|txt|csv|pptx?|xlsx?)(?:#[^()]*)?\)"  # (handbook.docx)
    r"|\[\^?\d+(?:\s*[,\u2013-]\s*\d+)*\]"  # [2], [1, 3], [^4]
    r"|【[^【】]*】)"  # 【4:0†source】
)
CITATION = re.compile(_POINTER)
"""A citation of a source, as written in responses."""

_MARKER = re.compile(r"^\s*(?:[-*+•·▪◦‣\u2013\u2014]|\(?\d{1,2}[.)]|\(?[a-zA-Z]\))\s+(?=\S)|^\s*(?P<heading>#{1,6})\s+")
_CELL_END = re.compile(r"(?<!\\)\|")
_TABLE_RULE = re.compile(r"^\s*\|?(?:\s*:?-+:?\s*\|)+(?:\s*:?-+:?)?\s*$")
"""The line below the header of a table."""
_INLINE_BULLET = re.compile(r"\s+[•·▪◦‣]\s+")
_RULE = re.compile(r"^[\s|:=_*~-]*$")
_CLOSERS = r"[\"'”\u2019)\]】」』）》*\s]*$"  # noqa: RUF001
_SENTENCE_END = re.compile(rf"[.!?…:;{SENTENCE_ENDS}]" + _CLOSERS)
# A quotation in Japanese and Chinese goes on after its closing bracket.
_SCRIPT_END = re.compile(rf"(?<=[{SENTENCE_ENDS}])(?![」』])[\"'”\u2019)\]】）》]*\s*")  # noqa: RUF001
_STOP = re.compile(r"[.!?…]+[\"'”\u2019)\]»]*\s+")
_SHORTEST_LAST_WORD = 4
_SHORTEST_WITHOUT_STOPS = 20
_TRAILING = re.compile(rf"(?:\s*{_POINTER})*[\s.,;·]*")
_CITED_END = re.compile(rf"(?:(?<=[.!?])(?:\s*{_POINTER})+|{_POINTER}\.)\s+(?=[^\Wa-z])")
_ABBREVIATION = re.compile(
    r"(?<![A-Z]\.)\b(?:Mr|Mrs|Ms|Dr|Prof|St|No|Nos|vs|approx|Fig|Sec|Art|Gen|Gov|Sen|Rep|Rev|Capt|Lt|Col|Sgt"
    r"|e\.g|i\.e|cf|[A-Z])\.$"
)
_WRAPPED_WIDTH = 40
_LONGEST_BLOCK = 10_000


@dataclass(frozen=True, slots=True)
class Block:
    """A block of text that sentences do not cross, with normalized white space.

    Args:
        text: Text without its list or heading marker.
        item: True if the block is a list item.
        cells: Cells of a row of a table; empty for other blocks.
        header: Cells of the header above the row; of the header itself, its own.
    """

    text: str
    item: bool = False
    cells: tuple[str, ...] = ()
    header: tuple[str, ...] = ()

    @property
    def is_header(self) -> bool:
        """Whether it is the header of a table."""
        return bool(self.cells) and self.cells is self.header


def split_blocks(text: str) -> list[Block]:
    r"""Split a text at blank lines, list items, headings and rows of tables; join the lines of a wrapped paragraph.

    >>> [block.text for block in split_blocks("You need:\n- a badge\n- a laptop that\n  is new\n\nAsk IT.")]
    ['You need:', 'a badge', 'a laptop that is new', 'Ask IT.']
    >>> [(block.cells, block.is_header) for block in split_blocks("| item | price |\n|---|---|\n| Soup | 4 euros |")]
    [(('item', 'price'), True), (('Soup', '4 euros'), False)]
    """
    blocks: list[Block] = []
    open_block = False
    lines = _INLINE_BULLET.sub("\n• ", text).splitlines()
    header: tuple[str, ...] | None = None
    for number, line in enumerate(lines):
        if _RULE.match(line):
            open_block = False
            header = header if "|" in line else None
            continue
        is_header = number + 1 < len(lines) and _TABLE_RULE.match(lines[number + 1]) is not None
        if cells := _read_cells(line, is_header=is_header, in_table=header is not None):
            header = cells if is_header else header or ()
            blocks.append(Block(" ".join(line.split()), cells=cells, header=header))
            open_block = False
            continue
        header = None
        marker = _MARKER.match(line)
        words = " ".join(line[marker.end() if marker else 0 :].split())
        if open_block and marker is None and _continues(blocks[-1].text, words):
            blocks[-1] = Block(f"{blocks[-1].text} {words}", blocks[-1].item)
        else:
            blocks.append(Block(words, item=marker is not None and marker["heading"] is None))
        open_block = True
    return [replace(block, text=part) for block in blocks for part in cut_long(block.text, _LONGEST_BLOCK)]


def _read_cells(line: str, *, is_header: bool, in_table: bool) -> tuple[str, ...]:
    """Return the cells of a row of a table; none for another line. A row outside a table has bars at both ends."""
    bare = line.strip()
    has_ends = len(bare) > 1 and bare.startswith("|") and bare.endswith("|")
    if "|" not in bare or not (is_header or in_table or has_ends):
        return ()
    cells = [" ".join(cell.split()).replace("\\|", "|") for cell in _CELL_END.split(bare)]
    return tuple(cells[bare.startswith("|") : len(cells) - bare.endswith("|")])


def cut_long(text: str, limit: int) -> list[str]:
    """Split a text into parts of at most `limit` characters, at white space if possible.

    >>> cut_long("one two three", 8)
    ['one two', 'three']
    """
    parts = []
    while len(text) > limit:
        end = max(text.rfind(" ", 0, limit + 1), text.rfind("\n", 0, limit + 1))
        end = end if end > 0 else limit
        parts.append(text[:end])
        text = text[end:].lstrip()
    return [*parts, text] if text else parts


def split_sentences(text: str, cuts: Iterable[int]) -> list[str]:
    """Split a block into sentences where a sentence splitter proposes it and the text allows it.

    A split occurs only after the end of a sentence; a citation belongs to the sentence before it. Ends that a splitter
    for English does not know are added: the stops of other scripts, also without a space behind them; a full stop
    behind a word of four letters or more in another script than Latin; a space within Thai or Lao, which have no stops,
    if the sentence so far has 20 letters.

    Args:
        text: Text of the block.
        cuts: Proposed offsets at which sentences start.

    >>> split_sentences("\u5458\u5de5\u6709\u5047\u671f\u3002\u5317\u4eac\u5f88\u5927\u3002", [])
    ['\u5458\u5de5\u6709\u5047\u671f\u3002', '\u5317\u4eac\u5f88\u5927\u3002']
    >>> split_sentences("Ask Dr. Lee. [plan.pdf#page=3] Then wait (a week).", [4, 8, 13, 41])
    ['Ask Dr. Lee. [plan.pdf#page=3]', 'Then wait (a week).']
    """
    cited = [match.end() for match in _CITED_END.finditer(text)]
    if not text.isascii():
        cited += _cuts_by_script(text)
    unstopped = set() if text.isascii() else set(_spaces_without_stops(text))
    sentences: list[str] = []
    start = 0
    for offset in sorted({*cuts, *cited, *unstopped}):
        trailing = _TRAILING.match(text, offset)
        end = trailing.end() if trailing else offset
        if end > start and (offset in unstopped or _may_cut(text[start:end], text[end:])):
            sentences.append(text[start:end].strip())
            start = end
    return [sentence for sentence in (*sentences, text[start:].strip()) if sentence]


def _cuts_by_script(text: str) -> list[int]:
    """Return the offsets at which sentences of other scripts than Latin start."""
    cuts = [match.end() for match in _SCRIPT_END.finditer(text)]
    for match in _STOP.finditer(text):
        word = re.search(r"\S*$", text[: match.start()])
        letters = [] if word is None else [character for character in word[0] if is_letter(character)]
        if len(letters) >= _SHORTEST_LAST_WORD and not all(map(is_latin, letters)):
            cuts.append(match.end())
    return cuts


def _spaces_without_stops(text: str) -> list[int]:
    """Return the offsets behind spaces that end a sentence in a script without stops."""
    cuts, start = [], 0
    for match in re.finditer(r"\s+", text):
        before, after = text[match.start() - 1 : match.start()], text[match.end() : match.end() + 1]
        inside = before and after and has_no_stops(before) and has_no_stops(after)
        if inside and sum(map(is_letter, text[start : match.start()])) >= _SHORTEST_WITHOUT_STOPS:
            cuts.append(match.end())
            start = match.end()
    return cuts


def _continues(before: str, line: str) -> bool:
    """Return whether a line continues the paragraph before it."""
    return line[:1].islower() or (len(before) >= _WRAPPED_WIDTH and not _SENTENCE_END.search(before))


def _may_cut(before: str, after: str) -> bool:
    """Return whether one sentence may end with `before` and the next start with `after`."""
    if not after.strip() or after[:1].islower() or not any(character.isalnum() for character in before):
        return False
    if not any(character.isalnum() for character in after):
        return False
    end = CITATION.sub("", before).rstrip()
    return _SENTENCE_END.search(end) is not None and _ABBREVIATION.search(end) is None
