"""Evidence for a metric from the judge's answers in a golden case.

A case states the meaning of what a judge answered. Invalid answers (a list of verdicts whose length differs from the
number of claims, a truncated reply, a rating off the scale) are unusable, as they are for the stages: a failed verdict,
rating or reply. Answers to questions that the stages do not ask are ignored: a blank text has no claims and answers no
question, and a blank premise supports nothing.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from metric_core import reasons
from metric_core.columns import COLUMN_ALIASES, COLUMNS, KEY_POINTS, ColumnType
from metric_core.declarations.metric import MetricRequest
from metric_core.evidence import ALL_CONTEXTS, BY_REFERENCE, BY_RESPONSE, BY_USER_INPUT, Evidence, context_premise
from metric_core.metrics._votes import exact_label
from metric_core.metrics.discrete_criteria import discrete_value
from metric_core.prompts.judge_questions import ChoiceQuestion, RatingRequest
from metric_core.prompts.replies import parse_json_reply
from metric_core.question_kinds import QuestionKind
from metric_core.records import Importance, KeyPoint, Place, Question, Rating, Sample, Score, Side, Support, VerdictKind
from metric_core.stages import Product, closure

MOST_ATTEMPTS = 5
_BLANK = " "
_CLAIM_SIDES = {
    "response_claims": Side.RESPONSE,
    "response_sentences": Side.RESPONSE_SENTENCE,
    "reference_claims": Side.REFERENCE,
    "key_points": Side.KEY_POINT,
}
_LEVELS = {VerdictKind.SUPPORT: ("support",), VerdictKind.PARTIAL_SUPPORT: ("support", "partial")}
_WHOLE_NUMBER_KINDS = (QuestionKind.ASPECT, QuestionKind.CRITERIA_INTEGER)
_ANSWERS: dict[Product, tuple[str, ...]] = {
    Product.RESPONSE_CLAIMS: ("response_claims", "classification"),
    Product.RESPONSE_SENTENCES: ("cites",),
    Product.REFERENCE_CLAIMS: ("reference_claims", "classification", "recall_attributed"),
    Product.REFERENCE_SENTENCES: ("recall_attributed",),
    Product.KEY_POINTS: ("key_points",),
    Product.CONTEXT_SENTENCES: ("context_sentences_pysbd",),
    Product.REFERENCE_ENTITIES: ("reference_entities",),
    Product.CONTEXT_ENTITIES: ("context_entities",),
    Product.REFERENCE_ENTITIES_IN_CONTEXTS: ("context_entities",),
    Product.QUESTIONS: ("generated_questions",),
    Product.RATINGS: ("ratings", "critic_verdicts", "criteria_scores", "value", "rubric_score"),
    Product.USEFULNESS_FOR_REFERENCE: ("context_useful",),
    Product.USEFULNESS_FOR_RESPONSE: ("context_useful",),
}
"""Product -> names of the judge's answers that it is computed from, as cases use them; at least one is required."""

Verdicts = dict[tuple[VerdictKind, str, str], Support]


def sample_of(columns: Mapping[str, Any]) -> Sample:
    """Return the sample of a case, by columns and their aliases; ids become texts."""
    values: dict[str, Any] = {}
    for given, value in columns.items():
        name = COLUMN_ALIASES.get(given, given)
        if name in COLUMNS and (name == given or name not in columns):
            is_list = COLUMNS[name] in (ColumnType.TEXTS, ColumnType.IDS)
            values[name] = tuple(map(str, value)) if is_list and value is not None else value
            if name == KEY_POINTS:
                values[name] = tuple(KeyPoint(text, Importance(importance)) for text, importance in value.items())
    return Sample(row_id="case", **values)


def evidence_of(request: MetricRequest, sample: Sample, judge: Mapping[str, Any]) -> Evidence:
    """Return the evidence from the judge's answers; with a truncated raw reply, nothing is usable."""
    if not _has_whole_reply(judge):
        failed = Score.failed(reasons.NO_USABLE_REPLY)
        return Evidence(sample, gaps=dict.fromkeys(Product, failed))
    products = request.products
    for product in closure(products):
        if product in _ANSWERS and not any(name in judge for name in _ANSWERS[product]):
            raise ValueError(f"{request.key} needs the judge's {' or '.join(_ANSWERS[product])}")
    claims = _claims(sample, judge)
    questions = _questions(sample, judge)
    return Evidence(
        sample,
        claims={side: dict.fromkeys(ids, "") for side, ids in claims.items()},
        verdicts=_verdicts(sample, judge, claims),
        places=_places(judge, claims),
        importances={f"{Side.KEY_POINT}:{i}": each.importance for i, each in enumerate(sample.key_points or ())},
        entities={
            Side.REFERENCE: judge.get("reference_entities") or (),
            Side.CONTEXT: judge.get("context_entities") or (),
        },
        questions=questions,
        question_similarities=[
            _similarity(judge, sample.user_input, q.text) if q.text.strip() else None
            for q in questions
            if Product.QUESTION_SIMILARITY in products
        ],
        answer_similarities={
            product: _similarity(judge, sample.response, sample.reference)
            for product in (Product.ANSWER_SIMILARITY, Product.ANSWER_SIMILARITY_BY_CROSS_ENCODER)
            if product in products
        },
        ratings={request.key: _ratings(request, sample, judge)},
    )


def _has_whole_reply(judge: Mapping[str, Any]) -> bool:
    if judge.get("raw_text") is None:
        return True
    try:
        parse_json_reply(judge["raw_text"])
    except ValueError:
        return False
    return True


def _questions(sample: Sample, judge: Mapping[str, Any]) -> list[Question]:
    if _is_blank(sample.response):
        return []
    return [Question(q["question"], bool(q.get("noncommittal"))) for q in judge.get("generated_questions") or ()]


def _claims(sample: Sample, judge: Mapping[str, Any]) -> dict[Side, list[str]]:
    """Return claim ids by side. The unit of `recall_attributed` can be a claim or a sentence of the reference."""
    classes = judge.get("classification")
    counts = {side: len(judge.get(name) or ()) for name, side in _CLAIM_SIDES.items()}
    if classes is not None and any(map(len, classes.values())):
        counts = {
            Side.RESPONSE: len(classes["TP"]) + len(classes["FP"]),
            Side.REFERENCE: max(len(classes["FN"]), counts[Side.REFERENCE]),
        }
    if "recall_attributed" in judge:
        units = judge.get("reference_sentences")
        counts[Side.REFERENCE] = len(judge["recall_attributed"] if units is None else units)
    for side, text in ((Side.RESPONSE, sample.response), (Side.REFERENCE, sample.reference)):
        counts[side] = 0 if _is_blank(text) else counts[side]
    counts[Side.RESPONSE_SENTENCE] = len(judge.get("cites") or ())
    counts[Side.REFERENCE_SENTENCE] = counts[Side.REFERENCE]
    counts[Side.CONTEXT_SENTENCE] = len(judge.get("context_sentences_pysbd") or ())
    return {side: [f"{side}:{i}" for i in range(count)] for side, count in counts.items()}


def _verdicts(sample: Sample, judge: Mapping[str, Any], claims: Mapping[Side, Sequence[str]]) -> Verdicts:
    found: Verdicts = {}

    def support(side: Side, premise: str, answers: Sequence[Support]) -> None:
        _give(found, VerdictKind.SUPPORT, claims[side], premise, answers)

    for name, answers in (judge.get("verdicts") or {}).items():
        claim_list, _, premise = name.partition("@")
        side = _CLAIM_SIDES[claim_list]
        is_point = side is Side.KEY_POINT
        if not is_point and not any(isinstance(answer, str) for answer in answers):
            support(side, premise, [_truth(answer) for answer in answers])
            continue
        for kind, supporting in _LEVELS.items():
            levels = [None if answer is None else float(answer in supporting) for answer in answers]
            of_claims = VerdictKind.FULL_SUPPORT if kind is VerdictKind.SUPPORT else kind
            _give(found, kind if is_point else of_claims, claims[side], premise, levels)
    if "recall_attributed" in judge:
        for side in (Side.REFERENCE, Side.REFERENCE_SENTENCE):
            support(side, ALL_CONTEXTS, [_truth(answer) for answer in judge["recall_attributed"]])
    if "classification" in judge:
        right, wrong, missed = (len(judge["classification"][name]) for name in ("TP", "FP", "FN"))
        support(Side.RESPONSE, BY_REFERENCE, [1.0] * right + [0.0] * wrong)
        covered = len(claims[Side.REFERENCE]) - missed if right + wrong + missed else 0
        support(Side.REFERENCE, BY_RESPONSE, [1.0] * covered + [0.0] * missed)
    useful = [_truth(answer) for answer in judge.get("context_useful") or ()]
    contexts = [context_premise(i) for i in range(len(sample.retrieved_contexts or ()))]
    for kind in (VerdictKind.USEFULNESS_FOR_REFERENCE, VerdictKind.USEFULNESS_FOR_RESPONSE):
        if len(useful) == len(contexts):
            found |= {(kind, "", premise): answer for premise, answer in zip(contexts, useful, strict=True)}
    _give(found, VerdictKind.RELEVANCE, claims[Side.CONTEXT_SENTENCE], BY_USER_INPUT, _relevance(judge))
    blank = [premise for premise, text in _premises(sample).items() if _is_blank(text)]
    found |= {(kind, name, premise): 0.0 for kind, name, premise in found if premise in blank}
    return found | {
        (VerdictKind.SUPPORT, name, premise): 0.0 for premise in blank for ids in claims.values() for name in ids
    }


def _places(judge: Mapping[str, Any], claims: Mapping[Side, Sequence[str]]) -> dict[str, Place]:
    """Return the places of response claims and sentences: `cites` has the labels by sentence and claim."""
    sentences = judge.get("cites") or ()
    labels = [(number, found) for number, of_sentence in enumerate(sentences) for found in of_sentence]
    places = {
        claim: Place(0, 0, number, tuple(found))
        for claim, (number, found) in zip(claims[Side.RESPONSE], labels, strict=False)
    }
    for number, of_sentence in enumerate(sentences):
        every = dict.fromkeys(label for found in of_sentence for label in found)
        places[f"{Side.RESPONSE_SENTENCE}:{number}"] = Place(0, 0, number, tuple(every))
    return places


def _premises(sample: Sample) -> dict[str, str | None]:
    contexts = sample.retrieved_contexts
    each = {context_premise(i): text for i, text in enumerate(contexts or ())}
    joined = None if contexts is None else sample.joined_contexts
    return {ALL_CONTEXTS: joined, BY_REFERENCE: sample.reference, BY_RESPONSE: sample.response, **each}


def _is_blank(text: str | None) -> bool:
    return text is not None and not text.strip()


def _give(found: Verdicts, kind: VerdictKind, ids: Sequence[str], premise: str, answers: Sequence[Support]) -> None:
    """Record the verdicts of a list; none if its length differs from the number of claims."""
    if len(ids) == len(answers):
        found |= {(kind, claim, premise): answer for claim, answer in zip(ids, answers, strict=True)}


def _truth(answer: object) -> Support:
    return float(bool(answer)) if isinstance(answer, int | float) else None


def _relevance(judge: Mapping[str, Any]) -> list[Support]:
    """Mark one equal context sentence for each relevant sentence, or none if no context contains it."""
    relevant = [sentence.strip() for sentence in judge.get("relevant_sentences") or ()]
    marks: list[Support] = []
    for sentence in judge.get("context_sentences_pysbd") or ():
        marks.append(float(sentence.strip() in relevant))
        if marks[-1]:
            relevant.remove(sentence.strip())
    return marks


def _similarity(judge: Mapping[str, Any], one: str | None, other: str | None) -> float | None:
    vectors = []
    for text in (one or "", other or ""):
        known = judge["embeddings"]
        vectors.append(known[text] if text.strip() or _BLANK not in known else known[_BLANK])
    norm = math.hypot(*vectors[0]) * math.hypot(*vectors[1])
    return math.fsum(a * b for a, b in zip(*vectors, strict=True)) / norm if norm else None


def _ratings(request: MetricRequest, sample: Sample, judge: Mapping[str, Any]) -> list[Rating]:
    asked = request.rating_requests(sample)
    if isinstance(asked, Score):
        return []
    if "ratings" in judge:
        return [
            Rating(rating.template, _first_label(attempts[:MOST_ATTEMPTS], rating))
            for rating, attempts in zip(asked, judge["ratings"].values(), strict=True)
        ]
    replies = iter(_replies(judge))
    return [Rating(rating.template, value) for rating in asked for value in _votes(rating, replies)]


def _first_label(attempts: Sequence[Any], rating: RatingRequest) -> str | None:
    if not isinstance(rating.question, ChoiceQuestion):
        raise TypeError(f"attempts are for questions with labels, got {rating.question.kind}")
    labels = rating.question.labels
    return next((label for attempt in attempts if (label := exact_label(attempt, labels)) is not None), None)


def _replies(judge: Mapping[str, Any]) -> Sequence[Any]:
    for name in ("critic_verdicts", "criteria_scores"):
        if name in judge:
            return list(judge[name])
    return [judge[name] for name in ("value", "rubric_score") if name in judge]


def _votes(rating: RatingRequest, replies: Iterator[Any]) -> list[str | float | None]:
    """Return the answers to one question; votes without a reply in the case have failed."""
    question = rating.question
    if not isinstance(question, ChoiceQuestion):
        return [next(replies, None)]
    votes = list(islice(replies, question.votes))
    whole = question.kind in _WHOLE_NUMBER_KINDS
    allowed: Any = [int(label) for label in question.labels] if whole else question.labels
    chosen = [discrete_value(vote, allowed) for vote in votes]
    labels = [None if value is None else str(value) for value in chosen]
    return [*labels, *[None] * (question.votes - len(labels))]
