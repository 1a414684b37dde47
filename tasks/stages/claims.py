"""The stage `claims`: responses and references as standalone claims, references and contexts as sentences."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

from metric_core import reasons
from metric_core.judge_questions import QuestionKind, ask_claims
from metric_core.records import AnswerStatus, Sample, Side
from metric_core.stages import Product, Stage
from tasks.judges.batching import JudgeBatcher
from tasks.judges.protocol import GenerateAnswer
from tasks.models.models import open_judges, open_pipeline
from tasks.options.judged_settings import JudgedSettings
from tasks.stages.answer_cells import reply_cell
from tasks.stages.base import StageOutput, Tables, progress_reporter, stage
from tasks.tables.records import build_table, read_samples_table

_NOTHING_FOUND = {
    Side.RESPONSE: reasons.NO_RESPONSE_CLAIMS,
    Side.REFERENCE: reasons.NO_REFERENCE_CLAIMS,
    Side.REFERENCE_SENTENCE: reasons.NO_REFERENCE_SENTENCES,
    Side.CONTEXT_SENTENCE: reasons.NO_CONTEXTS,
}


class ClaimsSettings(JudgedSettings):
    """What the stage computes, and with what."""

    asks: ClassVar[tuple[QuestionKind, ...]] = (QuestionKind.CLAIMS,)

    products: tuple[Product, ...]


@stage(Stage.CLAIMS, version=2)
def claims(tables: Tables, settings: ClaimsSettings) -> StageOutput:
    """Decomposes each text of the samples that a product asks for."""
    samples = read_samples_table(tables[Stage.SAMPLES])
    asker = JudgeBatcher(open_judges(settings), progress_reporter(Stage.CLAIMS))
    rows: list[dict[str, Any]] = []
    if Product.RESPONSE_CLAIMS in settings.products:
        rows += _claim_rows(samples, Side.RESPONSE, lambda sample: sample.response, asker)
    if Product.REFERENCE_CLAIMS in settings.products:
        rows += _claim_rows(samples, Side.REFERENCE, lambda sample: sample.reference, asker)
    split = open_pipeline(settings.language).sentences
    if Product.REFERENCE_SENTENCES in settings.products:
        sentences = split([sample.reference or "" for sample in samples])
        for sample, found in zip(samples, sentences, strict=True):
            rows += _listed(sample, Side.REFERENCE_SENTENCE, _numbered(Side.REFERENCE_SENTENCE, found))
    if Product.CONTEXT_SENTENCES in settings.products:
        rows += _context_sentence_rows(samples, split)
    return StageOutput(build_table(Stage.CLAIMS, rows), asker.usage)


def _claim_rows(
    samples: Sequence[Sample], side: Side, text_of: Callable[[Sample], str | None], asker: JudgeBatcher
) -> list[dict[str, Any]]:
    texts = [text_of(sample) or "" for sample in samples]
    asked = [i for i, text in enumerate(texts) if text.strip()]
    answers = asker.generate([ask_claims(texts[i], samples[i].user_input) for i in asked])
    by_row = dict(zip(asked, answers, strict=True))
    rows: list[dict[str, Any]] = []
    for i, sample in enumerate(samples):
        answer = by_row.get(i)
        if answer is None:
            rows.append(_outcome(sample, side, AnswerStatus.UNDEFINED, reasons.empty_column(side)))
            continue
        if answer.status is AnswerStatus.ANSWERED:
            found = _listed(sample, side, _numbered(side, _clean(answer)))
        else:
            found = [_outcome(sample, side, answer.status, answer.reason)]
        rows += [{**found[0], "reply": reply_cell(answer)}, *found[1:]]
    return rows


def _context_sentence_rows(
    samples: Sequence[Sample], split: Callable[[Sequence[str]], list[list[str]]]
) -> list[dict[str, Any]]:
    passages = list(dict.fromkeys(text for sample in samples for text in sample.retrieved_contexts or ()))
    sentences = dict(zip(passages, split(passages), strict=True))
    rows: list[dict[str, Any]] = []
    for sample in samples:
        found = [
            (f"{Side.CONTEXT_SENTENCE}:{i}:{j}", sentence)
            for i, passage in enumerate(sample.retrieved_contexts or ())
            for j, sentence in enumerate(sentences[passage])
        ]
        rows += _listed(sample, Side.CONTEXT_SENTENCE, found)
    return rows


def _clean(answer: GenerateAnswer) -> list[str]:
    return [text for claim in answer.value["claims"] if (text := claim.strip())]


def _numbered(side: Side, texts: Iterable[str]) -> list[tuple[str, str]]:
    return [(f"{side}:{i}", text) for i, text in enumerate(texts)]


def _listed(sample: Sample, side: Side, found: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    if not found:
        return [_outcome(sample, side, AnswerStatus.UNDEFINED, _NOTHING_FOUND[side])]
    return [
        {"row_id": sample.row_id, "side": side, "claim_id": claim_id, "text": text, "status": AnswerStatus.ANSWERED}
        for claim_id, text in found
    ]


def _outcome(sample: Sample, side: Side, status: AnswerStatus, reason: str | None) -> dict[str, Any]:
    return {"row_id": sample.row_id, "side": side, "status": status, "reason": reason}
