"""Find evidence in chunks: the quotes of a reply, and the spans of questions that were written for an earlier index."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from metric_core.evidence_spans import EvidenceSpan, SpanState
from tasks.index_questions.written_question import WrittenQuestion
from tasks.sources.anchoring.span_places import Chunk, SpanPlaces
from tasks.sources.anchoring.span_text import AROUND, normal_text

GONE, EDITED = "its evidence is gone", "its evidence was edited"


def locate_quote(quote: str, chunks: Iterable[Chunk]) -> tuple[Chunk, EvidenceSpan] | None:
    r"""Return the chunk that holds a quote, and the quote as it is written there, with the words beside it; or None.

    White space may differ, and what a model leaves out or adds when it copies: marks of layout and of quotation, the
    full stop, capitals.

    >>> chunk = Chunk("1", "Hours:\nIt opens\nat nine.", "shop.md", start=100)
    >>> locate_quote("It opens at nine.", [chunk])[1]
    EvidenceSpan(text='It opens\nat nine.', document='shop.md', start=107, end=124, grade=1.0, before='hours', after='')
    >>> locate_quote("it opens at nine", [Chunk("1", "- It **opens** at nine. Bring a towel.")])[1].text
    'It **opens** at nine.'
    """
    words = re.findall(r"\w+", quote)
    if not words:
        return None
    verbatim = re.compile(r"\s+".join(map(re.escape, quote.split())))
    nearly = re.compile(r"\b" + r"[\W_]+".join(words) + r"\b[^\w\s]*", re.IGNORECASE)
    for chunk in chunks:
        match = verbatim.search(chunk.text) or nearly.search(chunk.text)
        if match is not None and normal_text(match.group()) == normal_text(quote):
            start = None if chunk.start is None else chunk.start + match.start()
            end = None if chunk.start is None else chunk.start + match.end()
            before, after = normal_text(chunk.text[: match.start()]), normal_text(chunk.text[match.end() :])
            beside = before[-AROUND:], after[:AROUND]
            return chunk, EvidenceSpan(match.group(), chunk.document, start, end, 1.0, *beside)
    return None


@dataclass(frozen=True, slots=True)
class CarriedQuestions:
    """Questions of an earlier index: those whose evidence its chunks still hold, and the others, each with the reason.

    A question that is kept has the places of its evidence in the new chunks, and counts as written from these.
    """

    kept: list[WrittenQuestion]
    retired: list[tuple[WrittenQuestion, str]]


def carry_questions(questions: Sequence[WrittenQuestion], chunks: Sequence[Chunk]) -> CarriedQuestions:
    """Return what becomes of questions when an index has other chunks."""
    places = SpanPlaces(span for question in questions for span in question.spans)
    places.read(chunks)
    by_id = {chunk.id: chunk for chunk in chunks}
    carried = CarriedQuestions([], [])
    for question in questions:
        spans: list[EvidenceSpan] = []
        holders: dict[str, None] = {}
        problem = None
        for span in question.spans:
            placed = places.place(span)
            held = [by_id[part.passage] for part in placed.parts]
            if placed.state is SpanState.UNCERTAIN:  # in several places, or in another document: it is there
                found = locate_quote(span.text, chunks)
                held = [] if found is None else [found[0]]
            if not held:
                problem = f"{EDITED}: {placed.change}" if placed.state is SpanState.EDITED else GONE
                break
            located = locate_quote(span.text, held)
            spans.append(span if located is None else located[1])
            holders.update(dict.fromkeys(chunk.digest for chunk in held))
        if problem is not None:
            carried.retired.append((question, problem))
        elif spans:
            carried.kept.append(replace(question, spans=tuple(spans), written_from=tuple(holders)))
        else:
            carried.kept.append(question)
    return carried
