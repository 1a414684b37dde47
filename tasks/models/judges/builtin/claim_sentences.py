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
from tasks.models.recognizers.text_layout import split_blocks

_RUNS_ON = re.compile(
    r"\b(?:is|are|was|were|be|includes?|included|including|contains?|covers?|offers?|provides?|requires?|needs?|has"
    r"|have|can|could|may|must|should|will|to|of|for|with|by)$",
    re.IGNORECASE,
)
# The parser often mistakes a short phrase for a sentence.
_SHORT_ITEM = 4
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
    candidates = _candidates(texts, pipeline)
    parses = pipeline.parse([candidate.sentence for candidate in candidates])
    claims: list[list[str]] = [[] for _ in texts]
    headings: list[list[str]] = [[] for _ in texts]
    for candidate, parse in zip(candidates, parses, strict=True):
        if not is_mostly_latin(candidate.sentence):
            claims[candidate.text_index].append(candidate.sentence)
            continue
        is_heading = not (candidate.item or is_clause(parse) or candidate.sentence.endswith((".", "!")))
        (headings if is_heading else claims)[candidate.text_index].extend(_claims(candidate, parse, clauses=clauses))
    # A text that consists only of a name or a number is an answer, not a heading.
    found = [list(dict.fromkeys(stated or fallback)) for stated, fallback in zip(claims, headings, strict=True)]
    for index in _elliptical(candidates, parses):
        question = questions[index] if questions else None
        if question and question.strip() and found[index]:
            found[index] = [f"{question.strip()} {texts[index].strip()}"]
    return found


def _elliptical(candidates: Sequence[_Candidate], parses: Sequence[Parse]) -> Iterator[int]:
    """Yield the index of each text whose only sentence is no clause, so that it needs its question to be understood."""
    count = Counter(candidate.text_index for candidate in candidates)
    for candidate, parse in zip(candidates, parses, strict=True):
        if count[candidate.text_index] == 1 and not candidate.item and not is_clause(parse):
            yield candidate.text_index


def _candidates(texts: Sequence[str], pipeline: SpacyPipeline) -> list[_Candidate]:
    blocks_by_text = [[] if declines(text) else split_blocks(text) for text in texts]
    sentences = iter(pipeline.sentences([block.text for blocks in blocks_by_text for block in blocks]))
    candidates: list[_Candidate] = []
    for index, blocks in enumerate(blocks_by_text):
        lead_in: str | None = None
        for block in blocks:
            lead_in = lead_in if block.item else None
            for position, sentence in enumerate(map(clean, next(sentences))):
                if sentence.endswith(":"):
                    lead_in = sentence.rstrip(":").rstrip()
                elif not makes_no_claim(sentence):
                    opens_item = block.item and position == 0
                    candidates.append(_Candidate(index, sentence, lead_in if opens_item else None, block.item))
    return candidates


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
