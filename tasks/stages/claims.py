"""Decompose responses and references into claims, texts into sentences, and place both: the stage `claims`.

Key points are claims too: those given with the data, else the claims of the reference, else those that the judge
writes from the question and the relevant passages. One whose evidence was edited is left out: it may no longer be true.

Citation markers are not part of a claim: a text is decomposed without them, and its claims keep the labels of the
markers that belong to them.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from metric_core import reasons
from metric_core.claims.claim_places import locate_sentences, place_claims, place_sentences
from metric_core.prompts.judge_questions import Kind, ask_claims
from metric_core.question_kinds import FOR_KEY_POINTS, QuestionKind
from metric_core.records import AnswerStatus, Importance, KeyPoint, Place, Sample, Side
from metric_core.stages import Product, Stage
from tasks.models.judges.answer_cells import reply_cell
from tasks.models.judges.batching import JudgeBatcher
from tasks.models.judges.protocol import GenerateAnswer
from tasks.models.protocol import Models
from tasks.options.citation_options import CitationOptions
from tasks.options.judged_settings import JudgedSettings
from tasks.options.key_point_options import KeyPointOptions
from tasks.rows.records import build_table, read_samples_table
from tasks.stages.definition import Progress, StageOutput, Tables, stage
from tasks.stages.key_point_writing import write_key_points

if TYPE_CHECKING:
    from metric_core.claims.citations import StrippedText

_NOTHING_FOUND = {
    Side.RESPONSE: reasons.NO_RESPONSE_CLAIMS,
    Side.RESPONSE_SENTENCE: reasons.NO_RESPONSE_SENTENCES,
    Side.REFERENCE: reasons.NO_REFERENCE_CLAIMS,
    Side.REFERENCE_CONTEXT: reasons.NO_REFERENCE_CONTEXT_CLAIMS,
    Side.REFERENCE_SENTENCE: reasons.NO_REFERENCE_SENTENCES,
    Side.CONTEXT_SENTENCE: reasons.NO_CONTEXTS,
    Side.KEY_POINT: reasons.NO_KEY_POINTS,
}
_WHOLE_TEXTS = {Product.RESPONSE_CLAIMS: Side.RESPONSE, Product.REFERENCE_CLAIMS: Side.REFERENCE}
_SENTENCES = {
    Product.RESPONSE_SENTENCES: Side.RESPONSE_SENTENCE,
    Product.REFERENCE_SENTENCES: Side.REFERENCE_SENTENCE,
}

Split = Callable[[Sequence[str]], list[list[str]]]
"""Function that splits texts into sentences."""

Strip = Callable[[Sample, str | None], "StrippedText"]
"""Function that returns a text of a sample without its citation markers."""


class ClaimsSettings(JudgedSettings, CitationOptions, KeyPointOptions):
    """Settings of the stage `claims`.

    Args:
        products: Texts to decompose.
    """

    products: tuple[Product, ...]

    def asked_kinds(self, kinds: Sequence[Kind]) -> tuple[Kind, ...]:
        """Return the kinds of questions that the products are computed from."""
        of_points = Product.KEY_POINTS in self.products
        return tuple(kind for kind in kinds if of_points or kind not in FOR_KEY_POINTS)


@dataclass(frozen=True, slots=True)
class _Text:
    """A text to decompose.

    Args:
        stem: Beginning of the ids of its claims.
        stripped: The text without citation markers.
        user_input: User question that it answers, if any.
    """

    sample: Sample
    side: Side
    stem: str
    stripped: "StrippedText"
    user_input: str | None = None


@stage(Stage.CLAIMS, version=9, reads=(Stage.SAMPLES,), asks=(QuestionKind.CLAIMS, *FOR_KEY_POINTS))
def claims(tables: Tables, settings: ClaimsSettings, models: Models, progress: Progress) -> StageOutput:
    """Decompose each text of the samples that a product needs."""
    samples = read_samples_table(tables[Stage.SAMPLES])
    batcher = JudgeBatcher(models.judge(), progress)
    split: Split = models.pipeline().sentences
    strip = partial(_strip, settings.citation_pattern)
    texts: list[_Text] = []
    for product, side in _WHOLE_TEXTS.items():
        if product in settings.products:
            texts += [_text(sample, side, strip(sample, getattr(sample, side))) for sample in samples]
    of_points = Product.KEY_POINTS in settings.products
    without_points = [sample for sample in samples if sample.key_points is None] if of_points else []
    unwritten = [sample for sample in without_points if settings.write_key_points or not _has_reference(sample)]
    referred = () if settings.write_key_points else filter(_has_reference, without_points)
    texts += [_text(sample, Side.KEY_POINT, strip(sample, sample.reference)) for sample in referred]
    of_contexts = Product.REFERENCE_CONTEXT_CLAIMS in settings.products
    texts += _reference_contexts(samples, strip) if of_contexts else ()
    rows = _claim_rows(
        texts, batcher, split, strip
    )  # all at once: writing a reply takes a second on the fastest of servers
    rows += _rows_without_reference_contexts(samples) if of_contexts else ()
    for product, side in _SENTENCES.items():
        if product in settings.products:
            rows += _sentence_rows(samples, side, strip, split)
    rows += _given_point_rows(samples) if of_points else ()
    rows += _written_point_rows(unwritten, batcher)
    if Product.CONTEXT_SENTENCES in settings.products:
        rows += _context_sentence_rows(samples, split)
    return StageOutput(build_table(Stage.CLAIMS, rows), batcher.usage)


def _has_reference(sample: Sample) -> bool:
    return bool((sample.reference or "").strip())


def _text(sample: Sample, side: Side, stripped: "StrippedText") -> _Text:
    return _Text(sample, side, str(side), stripped, sample.user_input)


def _strip(pattern: str | None, sample: Sample, text: str | None) -> "StrippedText":
    from metric_core.claims.citations import strip_citations  # noqa: PLC0415 compiles many patterns

    passages = None if sample.retrieved_contexts is None else len(sample.retrieved_contexts)
    return strip_citations(text or "", sample.retrieved_context_ids or (), pattern, passages)


def _reference_contexts(samples: Sequence[Sample], strip: Strip) -> list[_Text]:
    return [
        _Text(sample, Side.REFERENCE_CONTEXT, f"{Side.REFERENCE_CONTEXT}:{i}", strip(sample, text))
        for sample in samples
        for i, text in enumerate(sample.reference_contexts or ())
    ]


def _rows_without_reference_contexts(samples: Sequence[Sample]) -> list[dict[str, Any]]:
    without, reason = (sample for sample in samples if not sample.reference_contexts), reasons.NO_REFERENCE_CONTEXTS
    return [_row_without_text(sample, Side.REFERENCE_CONTEXT, AnswerStatus.UNDEFINED, reason) for sample in without]


def _claim_rows(texts: Sequence[_Text], batcher: JudgeBatcher, split: Split, strip: Strip) -> list[dict[str, Any]]:
    not_blank = [i for i, text in enumerate(texts) if text.stripped.text.strip()]
    answers = batcher.generate([ask_claims(texts[i].stripped.text, texts[i].user_input) for i in not_blank])
    by_text = dict(zip(not_blank, answers, strict=True))
    found = {i: _clean(answer, partial(strip, texts[i].sample)) for i, answer in by_text.items()}
    places = _places({i: (texts[i].stripped, claims) for i, claims in found.items()}, split)
    rows: list[dict[str, Any]] = []
    for i, text in enumerate(texts):
        answer = by_text.get(i)
        if answer is None:
            reason = reasons.NO_KEY_POINTS if text.side is Side.KEY_POINT else reasons.empty_column(_column(text.side))
            rows.append(_row_without_text(text.sample, text.side, AnswerStatus.UNDEFINED, reason))
            continue
        if answer.status is AnswerStatus.ANSWERED:
            numbered = _numbered(text.stem, found[i], places[i])
            first, *more = _answered_rows(text.sample, text.side, numbered)
        else:
            first, *more = [_row_without_text(text.sample, text.side, answer.status, answer.reason)]
        rows += [{**first, "reply": reply_cell(answer)}, *more]
    return rows


def _given_point_rows(samples: Sequence[Sample]) -> list[dict[str, Any]]:
    given = [(sample, sample.key_points) for sample in samples if sample.key_points is not None]
    return [row for sample, points in given for row in _point_rows(sample, points)]


def _written_point_rows(samples: Sequence[Sample], batcher: JudgeBatcher) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for sample, answer in zip(samples, write_key_points(samples, batcher), strict=True):
        if answer.status is AnswerStatus.ANSWERED:
            written = {point["text"].strip(): Importance(point["importance"]) for point in answer.value["key_points"]}
            first, *more = _point_rows(sample, [KeyPoint(text, each) for text, each in written.items() if text])
        else:
            first, *more = [_row_without_text(sample, Side.KEY_POINT, answer.status, answer.reason)]
        rows += [{**first, "reply": reply_cell(answer)}, *more]
    return rows


def _point_rows(sample: Sample, points: Sequence[KeyPoint]) -> list[dict[str, Any]]:
    valid = {f"{Side.KEY_POINT}:{i}": point for i, point in enumerate(points) if not point.is_edited}
    rows = _answered_rows(sample, Side.KEY_POINT, [(name, point.text, None) for name, point in valid.items()])
    if not valid:
        return rows
    return [{**row, "importance": point.importance} for row, point in zip(rows, valid.values(), strict=True)]


def _column(side: Side) -> str:
    return "reference_contexts" if side is Side.REFERENCE_CONTEXT else str(side)


def _places(claims: Mapping[int, tuple["StrippedText", Sequence[str]]], split: Split) -> dict[int, list[Place | None]]:
    """Return the places of the claims of each text; equal texts are split once."""
    texts = list(dict.fromkeys(text.text for text, found in claims.values() if found))
    sentences = dict(zip(texts, split(texts), strict=True))
    return {
        i: place_claims(text, found, locate_sentences(text.text, sentences[text.text])) if found else []
        for i, (text, found) in claims.items()
    }


def _sentence_rows(samples: Sequence[Sample], side: Side, strip: Strip, split: Split) -> list[dict[str, Any]]:
    of_response = side is Side.RESPONSE_SENTENCE
    texts = [strip(sample, sample.response if of_response else sample.reference) for sample in samples]
    rows: list[dict[str, Any]] = []
    for sample, text, sentences in zip(samples, texts, split([text.text for text in texts]), strict=True):
        places = place_sentences(text, locate_sentences(text.text, sentences))
        rows += _answered_rows(sample, side, _numbered(str(side), sentences, places))
    return rows


def _context_sentence_rows(samples: Sequence[Sample], split: Split) -> list[dict[str, Any]]:
    passages = list(dict.fromkeys(text for sample in samples for text in sample.retrieved_contexts or ()))
    sentences = dict(zip(passages, split(passages), strict=True))
    rows: list[dict[str, Any]] = []
    for sample in samples:
        numbered = [
            (f"{Side.CONTEXT_SENTENCE}:{i}:{j}", sentence, None)
            for i, passage in enumerate(sample.retrieved_contexts or ())
            for j, sentence in enumerate(sentences[passage])
        ]
        rows += _answered_rows(sample, Side.CONTEXT_SENTENCE, numbered)
    return rows


def _clean(answer: GenerateAnswer, strip: Callable[[str], "StrippedText"]) -> list[str]:
    if answer.status is not AnswerStatus.ANSWERED:
        return []
    return [text for claim in answer.value["claims"] if (text := strip(claim).text.strip())]


def _numbered(stem: str, texts: Sequence[str], places: Sequence[Place | None]) -> list[tuple[str, str, Place | None]]:
    return [(f"{stem}:{i}", text, place) for i, (text, place) in enumerate(zip(texts, places, strict=True))]


def _answered_rows(
    sample: Sample, side: Side, numbered: Sequence[tuple[str, str, Place | None]]
) -> list[dict[str, Any]]:
    if not numbered:
        return [_row_without_text(sample, side, AnswerStatus.UNDEFINED, _NOTHING_FOUND[side])]
    return [
        {
            "row_id": sample.row_id,
            "side": side,
            "claim_id": claim_id,
            "text": text,
            **_place_cells(place),
            "status": AnswerStatus.ANSWERED,
        }
        for claim_id, text, place in numbered
    ]


def _place_cells(place: Place | None) -> dict[str, Any]:
    if place is None:
        return {}
    return {"start": place.start, "end": place.end, "sentence": place.sentence, "citations": list(place.citations)}


def _row_without_text(sample: Sample, side: Side, status: AnswerStatus, reason: str | None) -> dict[str, Any]:
    return {"row_id": sample.row_id, "side": side, "status": status, "reason": reason}
