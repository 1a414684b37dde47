"""Judge claims against premises, the usefulness of passages and the relevance of sentences: the stage `verdicts`.

Each pair of claim and premise is one judge question. Claims are judged against single contexts in three rounds, because
noise sensitivity reads few of these verdicts: response claims only if the reference does not support them, and
reference claims only against contexts that support such a response claim. A reference without claims needs none. The
verdicts that metrics request themselves come last, except those that are known by then; in several rounds, if a
metric decides by the first what else it requests.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from metric_core.calibration.sure_threshold import describe_verdicts
from metric_core.declarations.metric import MetricRequest
from metric_core.evidence import (
    ALL_CONTEXTS,
    BY_EARLIER_ANSWERS,
    BY_REFERENCE,
    BY_USER_INPUT,
    ON_SOURCES,
    SUPPORTS,
    Evidence,
    context_premise,
    joint_premise,
    premise_text,
)
from metric_core.prompts.judge_questions import (
    PARTLY,
    YES,
    ChoiceQuestion,
    Kind,
    ask_key_point,
    ask_relevant_sentences,
    ask_usefulness_for_reference,
    ask_usefulness_for_response,
    ask_verdict,
)
from metric_core.question_kinds import QuestionKind
from metric_core.records import AnswerStatus, Sample, Side, VerdictKind, VerdictRequest
from metric_core.stages import PRODUCTS, Product, Stage
from tasks.models.judges.batching import JudgeBatcher
from tasks.models.judges.protocol import ChoiceAnswer, GenerateAnswer
from tasks.models.judges.verifiers.highlights import read_spans
from tasks.opening.protocol import Models
from tasks.options.judged_settings import JudgedSettings
from tasks.options.metric_settings import MetricSettings
from tasks.stages.answer_cells import panel_cell, reply_cell
from tasks.stages.definition import Progress, StageOutput, Tables, stage
from tasks.tables.records import build_table, read_asked_samples
from tasks.tables.sample_evidence import read_evidence

EMPTY_PREMISE = "empty premise"
EMPTY_TARGET = "nothing to be useful for"

Claims: TypeAlias = Mapping[Side, Mapping[str, str]]
"""The claims of a sample: side -> claim id -> text."""


class VerdictsSettings(JudgedSettings):
    """Settings of the stage `verdicts`.

    Args:
        products: Verdicts to ask for.
        every_context: Sides whose claims are all judged against each context, not only in the pairs that noise
            sensitivity reads with binary verdicts.
        metrics: Metrics that request verdicts.
    """

    products: tuple[Product, ...]
    every_context: tuple[Side, ...] = ()
    metrics: tuple[MetricSettings, ...] = ()

    def asked_kinds(self, kinds: Sequence[Kind]) -> tuple[Kind, ...]:
        """Return the kinds of questions that the products are computed from."""
        asked = {PRODUCTS[product].asks for product in self.products}
        return tuple(kind for kind in kinds if kind in asked)


@dataclass(frozen=True, slots=True)
class _Pending:
    """A verdict to ask for, or one that is known without a judge question."""

    row_id: str
    kind: VerdictKind
    claim_id: str
    premise: str
    question: ChoiceQuestion | None
    known: str | None = None
    request: VerdictRequest | None = None
    has_levels: bool = False
    """True for an answer in three levels, which is two rows: whether there is support, and whether there is any."""


@stage(
    Stage.VERDICTS,
    version=5,
    reads=(Stage.SAMPLES, Stage.FOLLOW_UPS, Stage.CLAIMS),
    asks=(
        QuestionKind.VERDICT,
        QuestionKind.USEFULNESS_FOR_REFERENCE,
        QuestionKind.USEFULNESS_FOR_RESPONSE,
        QuestionKind.RELEVANT_SENTENCES,
        QuestionKind.KEY_POINT,
    ),
)
def verdicts(tables: Tables, settings: VerdictsSettings, models: Models, progress: Progress) -> StageOutput:
    """Ask for every verdict that a product needs."""
    samples = read_asked_samples(tables)
    claims = _claims_by_row(tables[Stage.CLAIMS].to_pylist() if Stage.CLAIMS in tables else ())
    batcher = JudgeBatcher(models.judge(), progress)
    rows = _ask([p for s in samples for p in _first_round(s, claims.get(s.row_id, {}), settings.products)], batcher)
    if ON_SOURCES in settings.products:
        rows += _ask(_by_another(samples, claims, rows, ON_SOURCES, BY_EARLIER_ANSWERS), batcher)
    if Product.KEY_POINTS_BY_RESPONSE in settings.products and Product.KEY_POINTS_BY_CONTEXTS not in settings.products:
        rows += _ask(_by_another(samples, claims, rows, Product.KEY_POINTS_BY_RESPONSE, ALL_CONTEXTS), batcher)
    if Product.CLAIMS_BY_EACH_CONTEXT in settings.products or settings.every_context:
        sparing = Product.CLAIMS_BY_EACH_CONTEXT in settings.products
        rows += _each_context_rows(samples, claims, rows, batcher, settings.every_context, sparing=sparing)
    requests = [metric.request() for metric in settings.metrics]
    rows += _ask(_requested(samples, tables, requests, rows), batcher)
    following = [request for request in requests if request.metric.follows_up]
    while following and (pending := _requested(samples, tables, following, rows)):
        rows += _ask(pending, batcher)
    if Product.SENTENCE_RELEVANCE in settings.products:
        rows += _relevance_rows(samples, claims, batcher)
    return StageOutput(build_table(Stage.VERDICTS, rows), batcher.usage)


def _claims_by_row(rows: Iterable[Mapping[str, Any]]) -> dict[str, dict[Side, dict[str, str]]]:
    claims: dict[str, dict[Side, dict[str, str]]] = {}
    for row in rows:
        if row["claim_id"] is not None:
            claims.setdefault(row["row_id"], {}).setdefault(Side(row["side"]), {})[row["claim_id"]] = row["text"]
    return claims


def _first_round(sample: Sample, claims: Claims, products: Sequence[Product]) -> list[_Pending]:
    pending: list[_Pending] = []
    for product in (product for product in products if product in SUPPORTS):
        side, premise = SUPPORTS[product][0], joint_premise(sample, product)
        text = premise_text(sample, premise)
        ask = ask_key_point if product is Product.KEY_POINTS_BY_RESPONSE else ask_verdict
        pending += [
            _pending_support(sample, claim_id, claim, premise, text, ask=ask)
            for claim_id, claim in _list_claims(claims, side)
        ]
    if Product.USEFULNESS_FOR_REFERENCE in products:
        pending += _pending_usefulness(sample, VerdictKind.USEFULNESS_FOR_REFERENCE, sample.reference or "")
    if Product.USEFULNESS_FOR_RESPONSE in products:
        pending += _pending_usefulness(sample, VerdictKind.USEFULNESS_FOR_RESPONSE, sample.response or "")
    return pending


def _by_another(
    samples: Sequence[Sample],
    claims: Mapping[str, Claims],
    first: Sequence[Mapping[str, Any]],
    product: Product,
    premise: str,
) -> list[_Pending]:
    """Return whether another premise supports what the premise of a product does not, for evidence.

    A claim without support may at least have been said before, and a fact that the response leaves out may be in the
    contexts. No metric counts this as support.
    """
    unsupported = {
        (row["row_id"], row["claim_id"], row["premise"])
        for row in first
        if row["kind"] == VerdictKind.SUPPORT and row["verdict"] == 0
    }
    return [
        _pending_support(sample, claim_id, claim, premise, premise_text(sample, premise))
        for sample in samples
        if (sample.earlier_answers if premise == BY_EARLIER_ANSWERS else sample.retrieved_contexts)
        for claim_id, claim in _list_claims(claims.get(sample.row_id, {}), SUPPORTS[product][0])
        if (sample.row_id, claim_id, joint_premise(sample, product)) in unsupported
    ]


def _list_claims(claims: Claims, side: Side) -> list[tuple[str, str]]:
    return list(claims.get(side, {}).items())


def _pending_support(  # noqa: PLR0913 all of them are part of the verdict
    sample: Sample,
    claim_id: str,
    claim: str,
    premise: str,
    text: str,
    *,
    ask: Callable[[str, str], ChoiceQuestion] = ask_verdict,
) -> _Pending:
    has_levels = ask is ask_key_point
    if not text.strip():
        return _Pending(
            sample.row_id, VerdictKind.SUPPORT, claim_id, premise, None, EMPTY_PREMISE, has_levels=has_levels
        )
    question = ask(claim, text)
    return _Pending(sample.row_id, VerdictKind.SUPPORT, claim_id, premise, question, has_levels=has_levels)


def _pending_usefulness(sample: Sample, kind: VerdictKind, target: str) -> list[_Pending]:
    ask = ask_usefulness_for_reference if kind is VerdictKind.USEFULNESS_FOR_REFERENCE else ask_usefulness_for_response
    pending = []
    for i, passage in enumerate(sample.retrieved_contexts or ()):
        known = EMPTY_PREMISE if not passage.strip() else EMPTY_TARGET if not target.strip() else None
        question = None if known else ask(passage, sample.user_input or "", target)
        pending.append(_Pending(sample.row_id, kind, "", context_premise(i), question, known))
    return pending


def _each_context_rows(  # noqa: PLR0913 all of them decide what is asked
    samples: Sequence[Sample],
    claims: Mapping[str, Claims],
    first: Sequence[Mapping[str, Any]],
    batcher: JudgeBatcher,
    every: Collection[Side],
    *,
    sparing: bool,
) -> list[dict[str, Any]]:
    """Judge claims against single contexts.

    Args:
        claims: Claims by sample.
        first: Verdicts of the first round.
        every: Sides whose claims are all judged against each context.
        sparing: True to judge the claims of the other sides where noise sensitivity reads the verdict.
    """
    by_reference = {
        (row["row_id"], row["claim_id"]): row["verdict"]
        for row in first
        if row["kind"] == VerdictKind.SUPPORT and row["premise"] == BY_REFERENCE
    }
    compared = {s.row_id for s in samples if _list_claims(claims.get(s.row_id, {}), Side.REFERENCE)} if sparing else ()
    rows = _ask(
        [
            _pending_support(sample, claim_id, claim, context_premise(i), passage)
            for sample in samples
            for i, passage in enumerate(sample.retrieved_contexts or ())
            for claim_id, claim in _list_claims(claims.get(sample.row_id, {}), Side.RESPONSE)
            if Side.RESPONSE in every
            or (sample.row_id in compared and by_reference.get((sample.row_id, claim_id)) == 0)
        ],
        batcher,
    )
    # Noise sensitivity reads whether a context is relevant only where it supports a claim that the reference does not.
    supporting = {
        (row["row_id"], row["premise"])
        for row in rows
        if row["verdict"] == 1 and by_reference.get((row["row_id"], row["claim_id"])) == 0
    }
    return rows + _ask(
        [
            _pending_support(sample, claim_id, claim, context_premise(i), passage)
            for sample in samples
            for i, passage in enumerate(sample.retrieved_contexts or ())
            if Side.REFERENCE in every or (sparing and (sample.row_id, context_premise(i)) in supporting)
            for claim_id, claim in _list_claims(claims.get(sample.row_id, {}), Side.REFERENCE)
        ],
        batcher,
    )


def _requested(
    samples: Sequence[Sample], tables: Tables, requests: Sequence[MetricRequest], asked: Sequence[Mapping[str, Any]]
) -> list[_Pending]:
    """Return the verdicts that metrics request, except those that have been asked for.

    Some metrics request further verdicts once they know the first.
    """
    known = {(row["row_id"], row["kind"], row["claim_id"], row["premise"]) for row in asked}
    pending: list[_Pending] = []
    readable = {stage: tables[stage] for stage in (Stage.SAMPLES, Stage.CLAIMS) if stage in tables}
    if any(request.metric.follows_up for request in requests):
        readable[Stage.VERDICTS] = build_table(Stage.VERDICTS, asked)
    for evidence in read_evidence(samples, readable, "binary") if requests else ():
        for wanted in dict.fromkeys(each for request in requests for each in request.verdict_requests(evidence)):
            key = (evidence.sample.row_id, wanted.kind, *wanted.key)
            if key not in known:
                known.add(key)
                pending.append(_pending_request(wanted, evidence))
    return pending


def _pending_request(wanted: VerdictRequest, evidence: Evidence) -> _Pending:
    claim_id, premise = wanted.key
    claim, text = wanted.statement, wanted.premise_text
    if claim is None:
        claim = next(claims[claim_id] for claims in evidence.claims.values() if claim_id in claims)
    if text is None:
        text = premise_text(evidence.sample, premise)
    ask = ask_key_point if wanted.has_levels else ask_verdict
    pending = _pending_support(evidence.sample, claim_id, claim, premise, text, ask=ask)
    return replace(pending, kind=wanted.kind, request=wanted)


def _ask(pending: Sequence[_Pending], batcher: JudgeBatcher) -> list[dict[str, Any]]:
    answers = iter(batcher.choose([_question(v, v.question, batcher) for v in pending if v.question is not None]))
    rows = []
    for verdict in pending:
        answer = None if verdict.question is None else next(answers)
        rows.append(_known_row(verdict) if answer is None else _row(verdict, answer))
        if verdict.has_levels:
            partial = replace(verdict, kind=VerdictKind.PARTIAL_SUPPORT)
            rows.append(_known_row(partial) if answer is None else _partial_row(partial, answer))
    return rows


def _question(verdict: _Pending, question: ChoiceQuestion, batcher: JudgeBatcher) -> ChoiceQuestion:
    """Return the question of a verdict; to a cascade, with the verdicts that it is one of."""
    if not batcher.is_cascade(question.kind):
        return question
    return replace(question, about=describe_verdicts(verdict.kind, verdict.claim_id, verdict.premise))


def _known_row(verdict: _Pending) -> dict[str, Any]:
    return {
        **_cells_of(verdict),
        "verdict": 0,
        "probability": 0.0,
        "status": AnswerStatus.ANSWERED,
        "reason": verdict.known,
    }


def _row(verdict: _Pending, answer: ChoiceAnswer) -> dict[str, Any]:
    row = _row_of_labels(verdict, answer, (YES,)) | {"panel": panel_cell(answer)}
    if answer.status is not AnswerStatus.ANSWERED:
        return {**row, "reply": reply_cell(answer)}
    return {**row, "reply": None if read_spans(answer.reply) is None else reply_cell(answer)}


def _partial_row(verdict: _Pending, answer: ChoiceAnswer) -> dict[str, Any]:
    return _row_of_labels(verdict, answer, (YES, PARTLY))


def _row_of_labels(verdict: _Pending, answer: ChoiceAnswer, labels: Sequence[str]) -> dict[str, Any]:
    """Return the row whose verdict is 1 if the answer is one of the labels."""
    row = _cells_of(verdict)
    if answer.status is not AnswerStatus.ANSWERED:
        return {**row, "verdict": None, "status": answer.status, "reason": answer.reason}
    probabilities = answer.probabilities or {}
    known = [probabilities[label] for label in labels if label in probabilities]
    return {
        **row,
        "verdict": int(answer.label in labels),
        "probability": min(sum(known), 1.0) if known else None,
        "status": AnswerStatus.ANSWERED,
    }


def _cells_of(verdict: _Pending) -> dict[str, Any]:
    request = verdict.request
    return {
        **_key(verdict.row_id, verdict.kind, verdict.claim_id, verdict.premise),
        "statement": None if request is None else request.statement,
        "premise_text": None if request is None else request.premise_text,
    }


def _key(row_id: str, kind: VerdictKind, claim_id: str, premise: str) -> dict[str, Any]:
    return {"row_id": row_id, "kind": kind, "claim_id": claim_id, "premise": premise}


def _relevance_rows(
    samples: Sequence[Sample], claims: Mapping[str, Claims], batcher: JudgeBatcher
) -> list[dict[str, Any]]:
    with_sentences = [
        (sample, sentences)
        for sample in samples
        if (sentences := _list_claims(claims.get(sample.row_id, {}), Side.CONTEXT_SENTENCE))
    ]
    answers = batcher.generate(
        [ask_relevant_sentences([text for _, text in sentences], s.user_input or "") for s, sentences in with_sentences]
    )
    return [
        row
        for (sample, sentences), answer in zip(with_sentences, answers, strict=True)
        for row in _sentence_rows(sample, sentences, answer)
    ]


def _sentence_rows(
    sample: Sample, sentences: Sequence[tuple[str, str]], answer: GenerateAnswer
) -> list[dict[str, Any]]:
    relevant = set(answer.value["relevant"]) if answer.status is AnswerStatus.ANSWERED else set()
    return [
        {
            **_key(sample.row_id, VerdictKind.RELEVANCE, claim_id, BY_USER_INPUT),
            "verdict": int(number in relevant) if answer.status is AnswerStatus.ANSWERED else None,
            "status": answer.status,
            "reason": answer.reason,
            "reply": reply_cell(answer) if number == 1 else None,
        }
        for number, (claim_id, _) in enumerate(sentences, start=1)
    ]
