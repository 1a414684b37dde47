"""Judge claims against premises, the usefulness of passages and the relevance of sentences: the stage `verdicts`.

Products and metrics request verdicts. Each is one judge question, whoever requests it. Some requests depend on what is
known by then, so the stage asks in rounds, until nothing new is requested.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from metric_core.declarations.requested_verdicts import (
    REQUESTERS,
    QuestionWriter,
    RequestedVerdict,
    Requester,
    Requests,
    requester_of,
)
from metric_core.evidence import Evidence
from metric_core.prompts.judge_questions import PARTLY, YES, JudgeQuestion, Kind
from metric_core.question_kinds import QuestionKind
from metric_core.records import AnswerStatus, Side, VerdictKey, VerdictKind
from metric_core.schemas import EVIDENCE_COLUMNS
from metric_core.stages import PRODUCTS, Product, Stage
from tasks.models.judges.answer_cells import reply_cell, verdict_cells
from tasks.models.judges.batching import JudgeBatcher
from tasks.models.judges.protocol import ChoiceAnswer, GenerateAnswer
from tasks.models.protocol import Models
from tasks.options.judged_settings import JudgedSettings
from tasks.options.metric_settings import MetricSettings
from tasks.rows.records import build_table, read_asked_samples
from tasks.rows.sample_evidence import add_verdicts, read_evidence
from tasks.stages.definition import Progress, StageOutput, Tables, stage

_PARTIAL = {"kind": VerdictKind.PARTIAL_SUPPORT}
"""Cell of the second verdict that an answer in three levels gives: whether there is any support."""


class VerdictsSettings(JudgedSettings):
    """Settings of the stage `verdicts`.

    Args:
        products: Products that request verdicts, whichever metrics read them.
        metrics: Metrics that request verdicts of their own.
    """

    products: tuple[Product, ...]
    metrics: tuple[MetricSettings, ...] = ()

    def asked_kinds(self, kinds: Sequence[Kind]) -> tuple[Kind, ...]:
        """Return the kinds of questions that the products are computed from."""
        asked = {PRODUCTS[product].asks for product in self.products}
        return tuple(kind for kind in kinds if kind in asked)

    def requesters(self) -> list[Requester]:
        """Return what requests verdicts: the products, then the metrics."""
        of_products = [REQUESTERS[product] for product in self.products if product in REQUESTERS]
        return of_products + [requester_of(metric.request()) for metric in self.metrics]


@stage(
    Stage.VERDICTS,
    version=6,
    reads=(Stage.SAMPLES, Stage.FOLLOW_UPS, Stage.CLAIMS),
    columns=EVIDENCE_COLUMNS,
    asks=(
        QuestionKind.VERDICT,
        QuestionKind.USEFULNESS_FOR_REFERENCE,
        QuestionKind.USEFULNESS_FOR_RESPONSE,
        QuestionKind.RELEVANT_SENTENCES,
        QuestionKind.KEY_POINT,
    ),
)
def verdicts(tables: Tables, settings: VerdictsSettings, models: Models, progress: Progress) -> StageOutput:
    """Ask for every verdict that a product or a metric requests."""
    batcher = JudgeBatcher(models.judge(), progress)
    readable = {stage: tables[stage] for stage in (Stage.SAMPLES, Stage.CLAIMS) if stage in tables}
    asking = [_Row(evidence) for evidence in read_evidence(read_asked_samples(tables), readable, "binary")]
    requesters = settings.requesters()
    requests = [requester.first for requester in requesters]
    follow_ups = [requester.then for requester in requesters if requester.then is not None]
    rows: list[dict[str, Any]] = []
    while pending := [asked for row in asking for asked in row.request(requests)]:
        found = _ask(pending, batcher)
        rows += found
        requests, asking = follow_ups, _note(asking, found) if follow_ups else []
    return StageOutput(build_table(Stage.VERDICTS, rows), batcher.usage)


class _Row:
    """A row, with the verdicts that are known and those that have been requested."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self._writer = QuestionWriter(evidence)
        self._requested: set[VerdictKey] = set()

    def request(self, requests: Iterable[Requests]) -> list["_Asked"]:
        """Return the verdicts that are requested and have not been before, with their questions."""
        new: dict[VerdictKey, RequestedVerdict] = {}
        for request in requests:
            for verdict in request(self.evidence):
                if verdict.key not in self._requested:
                    new.setdefault(verdict.key, verdict)
        self._requested.update(new)
        return [_Asked(self, verdict, self._writer.write(verdict)) for verdict in new.values()]


class _Asked(NamedTuple):
    """A verdict to ask for.

    Args:
        question: The question; the reason if the verdict is no without one.
    """

    row: _Row
    verdict: RequestedVerdict
    question: JudgeQuestion | str


def _ask(pending: Sequence[_Asked], batcher: JudgeBatcher) -> list[dict[str, Any]]:
    """Return the rows of the table that verdicts are."""
    asked = [each for each in pending if not isinstance(each.question, str)]
    questions = [each.question for each in asked if not isinstance(each.question, str)]
    answers = iter(batcher.ask(questions, [each.verdict.key for each in asked]))
    return [
        row
        for each in pending
        for row in (
            _known_rows(each, each.question) if isinstance(each.question, str) else _answered_rows(each, next(answers))
        )
    ]


def _note(asking: Sequence[_Row], found: Iterable[dict[str, Any]]) -> list[_Row]:
    """Add verdicts to the evidence of their rows, and return the rows that have new ones."""
    new: dict[str, list[dict[str, Any]]] = {}
    for verdict in found:
        new.setdefault(verdict["row_id"], []).append(verdict)
    with_new = [row for row in asking if row.evidence.sample.row_id in new]
    for row in with_new:
        row.evidence = add_verdicts(row.evidence, new[row.evidence.sample.row_id])
    return with_new


def _known_rows(asked: _Asked, reason: str) -> list[dict[str, Any]]:
    known = {"verdict": 0, "probability": 0.0, "status": AnswerStatus.ANSWERED, "reason": reason}
    row = {**_cells_of(asked), **known}
    return [row, {**row, **_PARTIAL}] if asked.verdict.asks is QuestionKind.KEY_POINT else [row]


def _answered_rows(asked: _Asked, answer: ChoiceAnswer | GenerateAnswer) -> list[dict[str, Any]]:
    if isinstance(answer, GenerateAnswer):
        return _sentence_rows(asked, answer)
    cells = _cells_of(asked)
    row = {**cells, **_outcome(answer, (YES,)), **verdict_cells(answer)}
    if asked.verdict.asks is not QuestionKind.KEY_POINT:
        return [row]
    return [row, {**cells, **_outcome(answer, (YES, PARTLY)), **_PARTIAL}]


def _outcome(answer: ChoiceAnswer, labels: Sequence[str]) -> Mapping[str, Any]:
    """Return the cells of a verdict that is 1 if the answer is one of the labels."""
    if answer.status is not AnswerStatus.ANSWERED:
        return {"verdict": None, "status": answer.status, "reason": answer.reason}
    probabilities = answer.probabilities or {}
    known = [probabilities[label] for label in labels if label in probabilities]
    return {
        "verdict": int(answer.label in labels),
        "probability": min(sum(known), 1.0) if known else None,
        "status": AnswerStatus.ANSWERED,
    }


def _cells_of(asked: _Asked) -> dict[str, Any]:
    (kind, claim_id, premise), _, own = asked.verdict
    cells = {"row_id": asked.row.evidence.sample.row_id, "kind": kind, "claim_id": claim_id, "premise": premise}
    return cells if own is None else {**cells, "statement": own.statement, "premise_text": own.premise_text}


def _sentence_rows(asked: _Asked, answer: GenerateAnswer) -> list[dict[str, Any]]:
    """Return a verdict on each sentence that the reply is about, by its number from 1."""
    is_answered = answer.status is AnswerStatus.ANSWERED
    relevant = set(answer.value["relevant"]) if is_answered else set()
    return [
        {
            **_cells_of(asked),
            "claim_id": claim_id,
            "verdict": int(number in relevant) if is_answered else None,
            "status": answer.status,
            "reason": answer.reason,
            "reply": reply_cell(answer) if number == 1 else None,
        }
        for number, claim_id in enumerate(asked.row.evidence.claims[Side.CONTEXT_SENTENCE], start=1)
    ]
