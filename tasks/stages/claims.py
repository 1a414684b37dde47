"""Decompose responses and references into claims, references and contexts into sentences: the stage `claims`."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from metric_core import reasons
from metric_core.judge_questions import QuestionKind, ask_claims
from metric_core.records import AnswerStatus, Sample, Side
from metric_core.stages import Product, Stage
from tasks.judges.batching import JudgeBatcher
from tasks.judges.protocol import GenerateAnswer
from tasks.models.protocol import Models
from tasks.options.judged_settings import JudgedSettings
from tasks.stages.answer_cells import reply_cell
from tasks.stages.definition import Progress, StageOutput, Tables, stage
from tasks.tables.records import build_table, read_samples_table

_NOTHING_FOUND = {
    Side.RESPONSE: reasons.NO_RESPONSE_CLAIMS,
    Side.REFERENCE: reasons.NO_REFERENCE_CLAIMS,
    Side.REFERENCE_SENTENCE: reasons.NO_REFERENCE_SENTENCES,
    Side.CONTEXT_SENTENCE: reasons.NO_CONTEXTS,
}


class ClaimsSettings(JudgedSettings):
    """Settings of the stage `claims`.

    Args:
        products: Texts to decompose.
    """

    products: tuple[Product, ...]


@stage(Stage.CLAIMS, version=2, reads=(Stage.SAMPLES,), asks=(QuestionKind.CLAIMS,))
def claims(tables: Tables, settings: ClaimsSettings, models: Models, progress: Progress) -> StageOutput:
    """Decompose each text of the samples that a product needs."""
    samples = read_samples_table(tables[Stage.SAMPLES])
    batcher = JudgeBatcher(models.judge(), progress)
    rows: list[dict[str, Any]] = []
    if Product.RESPONSE_CLAIMS in settings.products:
        rows += _claim_rows(samples, Side.RESPONSE, lambda sample: sample.response, batcher)
    if Product.REFERENCE_CLAIMS in settings.products:
        rows += _claim_rows(samples, Side.REFERENCE, lambda sample: sample.reference, batcher)
    split = models.pipeline().sentences
    if Product.REFERENCE_SENTENCES in settings.products:
        sentences = split([sample.reference or "" for sample in samples])
        for sample, texts in zip(samples, sentences, strict=True):
            rows += _answered_rows(sample, Side.REFERENCE_SENTENCE, _numbered(Side.REFERENCE_SENTENCE, texts))
    if Product.CONTEXT_SENTENCES in settings.products:
        rows += _context_sentence_rows(samples, split)
    return StageOutput(build_table(Stage.CLAIMS, rows), batcher.usage)


def _claim_rows(
    samples: Sequence[Sample], side: Side, text_of: Callable[[Sample], str | None], batcher: JudgeBatcher
) -> list[dict[str, Any]]:
    texts = [text_of(sample) or "" for sample in samples]
    not_blank = [i for i, text in enumerate(texts) if text.strip()]
    answers = batcher.generate([ask_claims(texts[i], samples[i].user_input) for i in not_blank])
    by_row = dict(zip(not_blank, answers, strict=True))
    rows: list[dict[str, Any]] = []
    for i, sample in enumerate(samples):
        answer = by_row.get(i)
        if answer is None:
            rows.append(_row_without_text(sample, side, AnswerStatus.UNDEFINED, reasons.empty_column(side)))
            continue
        if answer.status is AnswerStatus.ANSWERED:
            first, *more = _answered_rows(sample, side, _numbered(side, _clean(answer)))
        else:
            first, *more = [_row_without_text(sample, side, answer.status, answer.reason)]
        rows += [{**first, "reply": reply_cell(answer)}, *more]
    return rows


def _context_sentence_rows(
    samples: Sequence[Sample], split: Callable[[Sequence[str]], list[list[str]]]
) -> list[dict[str, Any]]:
    passages = list(dict.fromkeys(text for sample in samples for text in sample.retrieved_contexts or ()))
    sentences = dict(zip(passages, split(passages), strict=True))
    rows: list[dict[str, Any]] = []
    for sample in samples:
        numbered = [
            (f"{Side.CONTEXT_SENTENCE}:{i}:{j}", sentence)
            for i, passage in enumerate(sample.retrieved_contexts or ())
            for j, sentence in enumerate(sentences[passage])
        ]
        rows += _answered_rows(sample, Side.CONTEXT_SENTENCE, numbered)
    return rows


def _clean(answer: GenerateAnswer) -> list[str]:
    return [text for claim in answer.value["claims"] if (text := claim.strip())]


def _numbered(side: Side, texts: Iterable[str]) -> list[tuple[str, str]]:
    return [(f"{side}:{i}", text) for i, text in enumerate(texts)]


def _answered_rows(sample: Sample, side: Side, numbered: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    if not numbered:
        return [_row_without_text(sample, side, AnswerStatus.UNDEFINED, _NOTHING_FOUND[side])]
    return [
        {"row_id": sample.row_id, "side": side, "claim_id": claim_id, "text": text, "status": AnswerStatus.ANSWERED}
        for claim_id, text in numbered
    ]


def _row_without_text(sample: Sample, side: Side, status: AnswerStatus, reason: str | None) -> dict[str, Any]:
    return {"row_id": sample.row_id, "side": side, "status": status, "reason": reason}
