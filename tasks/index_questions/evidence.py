"""Find evidence in chunks: the quotes of a reply, and the spans of questions that were written for an earlier index."""

import re
from collections.abc import Iterable, Mapping, Sequence

from metric_core.evidence_spans import EvidenceSpan
from metric_core.index_questions.written_question import WrittenQuestion
from tasks.index_questions.chunks import Chunk


def locate_quote(quote: str, chunks: Iterable[Chunk]) -> tuple[Chunk, EvidenceSpan] | None:
    r"""Return the chunk that holds a quote, and the quote as it is written there; None if none does.

    White space may differ.

    >>> chunk = Chunk("Hours:\nIt opens\nat nine.", "d", "shop.md", start=100)
    >>> locate_quote("It opens at nine.", [chunk])[1]
    EvidenceSpan(text='It opens\nat nine.', document='shop.md', start=107, end=124, grade=1.0)
    """
    words = quote.split()
    if not words:
        return None
    pattern = re.compile(r"\s+".join(map(re.escape, words)))
    for chunk in chunks:
        if (match := pattern.search(chunk.text)) is not None:
            start = None if chunk.start is None else chunk.start + match.start()
            end = None if chunk.start is None else chunk.start + match.end()
            return chunk, EvidenceSpan(match.group(), chunk.document, start, end)
    return None


class EvidenceFinder:
    """Finds the spans of questions in the chunks of an index."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self._chunks = chunks
        self._by_document: dict[str | None, list[Chunk]] = {}
        for chunk in chunks:
            self._by_document.setdefault(chunk.document, []).append(chunk)

    def holders(self, question: WrittenQuestion) -> Mapping[EvidenceSpan, Chunk] | None:
        """Return the chunk that holds each span of a question; None if a span is gone."""
        found: dict[EvidenceSpan, Chunk] = {}
        for span in question.spans:
            near = self._by_document.get(span.document, ())
            holder = next((chunk for part in (near, self._chunks) for chunk in part if span.text in chunk.text), None)
            if holder is None:
                return None
            found[span] = holder
        return found
