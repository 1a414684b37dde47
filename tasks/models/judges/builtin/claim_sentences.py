"""Extract claims without a language model: sentences, split into clauses that can stand alone."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from metric_core.refusals.refusal_forms import declines
from tasks.models.judges.builtin.clauses import as_sentence, is_clause, is_command, split_clauses
from tasks.models.judges.builtin.cleaning import clean, makes_no_claim
from tasks.models.recognizers.scripts import is_mostly_latin
from tasks.models.recognizers.spacy_pipeline import Parse, SpacyPipeline
from tasks.models.recognizers.text_layout import Block, split_blocks

_RUNS_ON = re.compile(
    r"\b(?:is|are|was|were|be|includes?|included|including|contains?|covers?|offers?|provides?|requires?|needs?|has"
    r"|have|can|could|may|must|should|will|to|of|for|with|by)$",
    re.IGNORECASE,
)
# The parser often mistakes a short phrase for a sentence.
_SHORT_ITEM = 4
_NUMBER = re.compile(
    r"(?i)(?:(?:step|part|section|chapter|point|option)\s+)?\(?(?:\d{1,3}(?:\.\d{1,3})*|[ivx]{1,5})[.):]*"
)
"""Number of a heading or an item, which a sentence splitter takes for a sentence."""
_WORDS = re.compile(r"\w")
_LETTERS = re.compile(r"[^\W\d_]")
_PAIR = 2
_MODAL = re.compile(r"\b(?:can|could|may|must|should|will|to)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A cleaned sentence that may be a claim.

    Args:
        text_index: Index of its text.
        lead_in: The words that introduce the list, if the sentence opens a list item.
        item: True if the sentence belongs to a list item.
    """

    text_index: int
    sentence: str
    lead_in: str | None
    item: bool


def split_claims(
    texts: Sequence[str],
    pipeline: SpacyPipeline,
    *,
    questions: Sequence[str | None] | None = None,
    clauses: bool = True,
) -> list[list[str]]:
    """Return the distinct claims of each text, in order.

    A sentence is one claim, or several if clauses joined by "and" or "but", or set off by commas, can stand alone. A
    list item is prefixed with the words that introduce its list. Questions, courtesies, headings and refusals to
    answer make no claim, nor does anything else in a text that declines to answer, such as whom to ask
    instead. A sentence that is mostly not in the Latin script is one claim, as it is written.

    Args:
        questions: The question that each text answers, if any. A text of one sentence without a finite verb, such as
            "No." or "60 minutes.", is one claim behind its question.
        clauses: False to keep each sentence whole.
    """
    candidates = _candidates(texts, pipeline, clauses=clauses)
    parses = pipeline.parse([candidate.sentence for candidate in candidates])
    claims: list[list[str]] = [[] for _ in texts]
    headings: list[list[str]] = [[] for _ in texts]
    numbers: list[list[str]] = [[] for _ in texts]
    for candidate, parse in zip(candidates, parses, strict=True):
        if not is_mostly_latin(candidate.sentence):
            claims[candidate.text_index].append(candidate.sentence)
            continue
        is_heading = not (candidate.item or is_clause(parse) or candidate.sentence.endswith((".", "!")))
        group = numbers if _NUMBER.fullmatch(candidate.sentence) else headings if is_heading else claims
        group[candidate.text_index].extend(_claims(candidate, parse, clauses=clauses))
    # A text that consists only of a name or a number is an answer, not a heading.
    found = [list(dict.fromkeys(next(filter(None, each), []))) for each in zip(claims, headings, numbers, strict=True)]
    for index in _elliptical(candidates, parses):
        question = questions[index] if questions else None
        if question and question.strip() and found[index]:
            found[index] = [f"{question.strip()} {texts[index].strip()}"]
    return found


def _elliptical(candidates: Sequence[_Candidate], parses: Sequence[Parse]) -> Iterator[int]:
    """Yield the index of each text whose only sentence is not a clause and needs its question to be understood."""
    count = Counter(candidate.text_index for candidate in candidates)
    for candidate, parse in zip(candidates, parses, strict=True):
        if count[candidate.text_index] == 1 and not candidate.item and not is_clause(parse):
            yield candidate.text_index


def _candidates(texts: Sequence[str], pipeline: SpacyPipeline, *, clauses: bool) -> list[_Candidate]:
    blocks_by_text = [[] if declines(text) else split_blocks(text) for text in texts]
    sentences = iter(pipeline.sentences([block.text for blocks in blocks_by_text for block in blocks]))
    candidates: list[_Candidate] = []
    for index, blocks in enumerate(blocks_by_text):
        lead_in: str | None = None
        for block in blocks:
            lead_in = lead_in if block.item else None
            if block.cells:
                next(sentences)
                candidates += (_Candidate(index, row, None, item=True) for row in _rows(block, clauses=clauses))
                continue
            for position, sentence in enumerate(map(clean, next(sentences))):
                if sentence.endswith(":"):
                    lead_in = sentence.rstrip(":").rstrip()
                elif not makes_no_claim(sentence):
                    opens_item = block.item and position == 0
                    candidates.append(_Candidate(index, sentence, lead_in if opens_item else None, block.item))
    return candidates


def _rows(block: Block, *, clauses: bool) -> Iterator[str]:
    """Yield what a row of a table says: each of its cells about the first one, or all of them at once.

    >>> header = ("item", "price", "size")
    >>> list(_rows(Block("", cells=("Soup", "4 euros", "large"), header=header), clauses=True))
    ['Soup: price 4 euros', 'Soup: size large']
    >>> list(_rows(Block("", cells=("Soup", "4 euros"), header=("item", "price")), clauses=True))
    ['Soup: 4 euros']
    """
    first, *others = clean(block.cells[0]), *map(_clean_inside, block.cells[1:])
    if block.is_header or not first:
        return
    names = [*map(_clean_inside, block.header[1:]), *("" for _ in others)]
    filled = [(name, cell) for name, cell in zip(names, others, strict=False) if _WORDS.search(cell)]
    # The name of the only other column says little that its cells do not, unless they are bare numbers.
    is_plain = len(block.cells) == len(filled) + 1 == _PAIR and _LETTERS.search(filled[0][1]) is not None
    said = [cell if is_plain or not name else f"{name} {cell}" for name, cell in filled]
    if not said:
        yield first
    elif clauses:
        yield from (f"{first}: {each}" for each in said)
    else:
        yield f"{first}: {', '.join(said)}"


def _clean_inside(cell: str) -> str:
    """Return a cell without citations and markup, as words inside a sentence, which keep their case."""
    cleaned = clean(cell)
    first = _LETTERS.search(cell)
    return cleaned[:1].lower() + cleaned[1:] if first is not None and first[0].islower() else cleaned


def _claims(candidate: _Candidate, parse: Parse, *, clauses: bool) -> Iterator[str]:
    lead_in = candidate.lead_in
    complete = is_clause(parse) and not (lead_in and _completes(lead_in, parse))
    if lead_in is None or complete:
        yield from split_clauses(parse) if clauses else [as_sentence(candidate.sentence)]
    else:
        first = parse[0]
        keeps_case = first.pos_ == "PROPN" or first.ent_type_ or first.text[1:2].isupper()
        item = parse.text if keeps_case else parse.text[:1].lower() + parse.text[1:]
        yield as_sentence(f"{lead_in} {item}" if _RUNS_ON.search(lead_in) else f"{lead_in}: {item}")


def _completes(lead_in: str, parse: Parse) -> bool:
    """Return whether an item that seems to have a verb continues its lead-in, as "ask" continues "You must"."""
    if is_command(parse):
        return _MODAL.search(lead_in) is not None
    return len(parse) <= _SHORT_ITEM and _RUNS_ON.search(lead_in) is not None
