"""Split plain text at its layout: paragraphs, headings, list items and citations, which sentences do not cross."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

_POINTER = (
    r"(?i:\[[^\[\]\s][^\[\]]*\.\w{2,5}(?:#[^\[\]]*)?\]"  # [benefit plan.pdf#page=3]
    r"|\((?:source: *)?[^()\s]+\.(?:pdf|html?|docx?|md|txt|csv|pptx?|xlsx?)(?:#[^()]*)?\)"  # (handbook.docx)
    r"|\[\^?\d+(?:\s*[,\u2013-]\s*\d+)*\]"  # [2], [1, 3], [^4]
    r"|【[^【】]*】)"  # 【4:0†source】
)
CITATION = re.compile(_POINTER)
"""A citation of a source, as written in responses."""

_MARKER = re.compile(r"^\s*(?:[-*+•·▪◦‣\u2013\u2014]|\(?\d{1,2}[.)]|\(?[a-zA-Z]\))\s+(?=\S)|^\s*(?P<heading>#{1,6})\s+")
_INLINE_BULLET = re.compile(r"\s+[•·▪◦‣]\s+")
_RULE = re.compile(r"^[\s|:=_*~-]*$")
_CLOSERS = r"[\"'”\u2019)\]】*\s]*$"
_SENTENCE_END = re.compile(r"[.!?…:;。\uff01\uff1f]" + _CLOSERS)
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
    """

    text: str
    item: bool = False


def split_blocks(text: str) -> list[Block]:
    r"""Split a text at blank lines, list items and headings; join the lines of a wrapped paragraph.

    >>> [block.text for block in split_blocks("You need:\n- a badge\n- a laptop that\n  is new\n\nAsk IT.")]
    ['You need:', 'a badge', 'a laptop that is new', 'Ask IT.']
    """
    blocks: list[Block] = []
    open_block = False
    for line in _INLINE_BULLET.sub("\n• ", text).splitlines():
        if _RULE.match(line):
            open_block = False
            continue
        marker = _MARKER.match(line)
        words = " ".join(line[marker.end() if marker else 0 :].split())
        if open_block and marker is None and _continues(blocks[-1].text, words):
            blocks[-1] = Block(f"{blocks[-1].text} {words}", blocks[-1].item)
        else:
            blocks.append(Block(words, item=marker is not None and marker["heading"] is None))
        open_block = True
    return [Block(part, block.item) for block in blocks for part in cut_long(block.text, _LONGEST_BLOCK)]


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

    A split occurs only after the end of a sentence; a citation belongs to the sentence before it.

    Args:
        text: Text of the block.
        cuts: Proposed offsets at which sentences start.

    >>> split_sentences("Ask Dr. Lee. [plan.pdf#page=3] Then wait (a week).", [4, 8, 13, 41])
    ['Ask Dr. Lee. [plan.pdf#page=3]', 'Then wait (a week).']
    """
    cited = (match.end() for match in _CITED_END.finditer(text))
    sentences: list[str] = []
    start = 0
    for offset in sorted({*cuts, *cited}):
        trailing = _TRAILING.match(text, offset)
        end = trailing.end() if trailing else offset
        if end > start and _may_cut(text[start:end], text[end:]):
            sentences.append(text[start:end].strip())
            start = end
    return [sentence for sentence in (*sentences, text[start:].strip()) if sentence]


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
