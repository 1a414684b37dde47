"""The questions a judge is asked, as data: what is asked of which texts, and what an answer may be.

A question names its kind and carries texts by role. How it is put to a language model (the prompt) or computed
(the builtin judge) is the judge's business. Texts come from the data and are not to be trusted; instructions
come from the user's configuration and are.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Any, TypeAlias

from metric_core.records import Sample


class QuestionKind(StrEnum):
    """What is asked. One prompt a kind."""

    CLAIMS = "claims"
    QUESTIONS = "questions"
    VERDICT = "verdict"
    USEFULNESS_FOR_REFERENCE = "usefulness_for_reference"
    USEFULNESS_FOR_RESPONSE = "usefulness_for_response"
    RELEVANT_SENTENCES = "relevant_sentences"
    ACCURACY_1 = "accuracy_1"
    ACCURACY_2 = "accuracy_2"
    CONTEXT_RELEVANCE_1 = "context_relevance_1"
    CONTEXT_RELEVANCE_2 = "context_relevance_2"
    GROUNDEDNESS_1 = "groundedness_1"
    GROUNDEDNESS_2 = "groundedness_2"
    ASPECT = "aspect"
    CRITERIA_CATEGORY = "criteria_category"
    CRITERIA_INTEGER = "criteria_integer"
    CRITERIA_NUMBER = "criteria_number"
    RUBRIC = "rubric"
    INSTANCE_RUBRIC = "instance_rubric"
    EXPLANATION = "explanation"


RATING_KINDS = (
    QuestionKind.ACCURACY_1,
    QuestionKind.ACCURACY_2,
    QuestionKind.CONTEXT_RELEVANCE_1,
    QuestionKind.CONTEXT_RELEVANCE_2,
    QuestionKind.GROUNDEDNESS_1,
    QuestionKind.GROUNDEDNESS_2,
    QuestionKind.ASPECT,
    QuestionKind.CRITERIA_CATEGORY,
    QuestionKind.CRITERIA_INTEGER,
    QuestionKind.CRITERIA_NUMBER,
    QuestionKind.RUBRIC,
    QuestionKind.INSTANCE_RUBRIC,
)
"""The kinds that a metric may put to the judge about a sample as a whole."""

YES, NO = "yes", "no"
YES_NO = (YES, NO)
USER_INPUT, RESPONSE, REFERENCE, CONTEXTS, CONTEXT, CLAIM, TEXT, SENTENCES = (
    "user_input",
    "response",
    "reference",
    "contexts",
    "context",
    "claim",
    "text",
    "sentences",
)
"""Roles of the texts in a question."""


@dataclass(frozen=True, slots=True)
class ChoiceQuestion:
    """Pick one of fixed labels.

    Args:
        kind: what is asked.
        texts: untrusted texts by role.
        labels: the allowed answers.
        instructions: trusted texts by role, from the configuration (a definition, a rubric).
        votes: how many independent answers are wanted.
    """

    kind: QuestionKind
    texts: Mapping[str, str]
    labels: tuple[str, ...]
    instructions: Mapping[str, str] = field(default_factory=dict)
    votes: int = 1


@dataclass(frozen=True, slots=True)
class GenerateQuestion:
    """Write JSON that fits a schema.

    Args:
        kind: what is asked.
        texts: untrusted texts by role.
        schema: the JSON schema of the reply.
        instructions: trusted texts by role, from the configuration.
    """

    kind: QuestionKind
    texts: Mapping[str, str]
    schema: Mapping[str, Any]
    instructions: Mapping[str, str] = field(default_factory=dict)


JudgeQuestion: TypeAlias = ChoiceQuestion | GenerateQuestion


_ENCODER = json.JSONEncoder(ensure_ascii=False)


def question_digest(question: JudgeQuestion) -> str:
    """Digest of everything in a question: equal questions have equal digests, whatever row they are about.

    The order of instructions and of a schema's members is part of it, because prompts and replies follow it.

    >>> question_digest(ask_verdict("It rains.", "Rain.")) == question_digest(ask_verdict("It rains.", "Rain."))
    True
    """
    content = _ENCODER.encode({part.name: getattr(question, part.name) for part in fields(question)})
    return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True)
class RatingRequest:
    """One rating question of a metric about a sample.

    Args:
        template: which of the metric's questions this is; unique within a metric and a row.
        question: what to ask.
    """

    template: str
    question: JudgeQuestion


def object_schema(properties: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of an object that has exactly these properties.

    >>> object_schema({"score": {"type": "integer"}})["required"]
    ['score']
    """
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


CLAIMS_SCHEMA = object_schema({"claims": {"type": "array", "items": {"type": "string"}}})
RELEVANT_SENTENCES_SCHEMA = object_schema({"relevant": {"type": "array", "items": {"type": "integer"}}})
EXPLANATION_SCHEMA = object_schema({"explanation": {"type": "string"}})


def questions_schema(count: int) -> dict[str, Any]:
    """The schema of a reply with `count` regenerated questions."""
    item = object_schema({"question": {"type": "string"}, "noncommittal": {"type": "boolean"}})
    return object_schema({"questions": {"type": "array", "items": item, "minItems": count, "maxItems": count}})


def ask_claims(text: str, user_input: str | None) -> GenerateQuestion:
    """Decompose a text, an answer to `user_input` where there is one, into standalone claims.

    Reply: `{"claims": [str, ...]}`.
    """
    texts = {TEXT: text} if user_input is None else {USER_INPUT: user_input, TEXT: text}
    return GenerateQuestion(QuestionKind.CLAIMS, texts, CLAIMS_SCHEMA)


def ask_questions(response: str, count: int) -> GenerateQuestion:
    """Regenerate `count` distinct questions that the response would answer.

    Reply: `{"questions": [{"question": str, "noncommittal": bool}, ...]}`.
    """
    return GenerateQuestion(QuestionKind.QUESTIONS, {RESPONSE: response}, questions_schema(count))


def ask_verdict(claim: str, premise: str) -> ChoiceQuestion:
    """Does the premise support the claim? yes or no."""
    return ChoiceQuestion(QuestionKind.VERDICT, {CONTEXT: premise, CLAIM: claim}, YES_NO)


def ask_explanation(claim: str, premise: str, verdict: str) -> GenerateQuestion:
    """Why is this the verdict on the claim? `verdict` is the label that was given: yes or no.

    Reply: `{"explanation": str}`.

    Raises:
        ValueError: the verdict is no label of a verdict.
    """
    if verdict not in YES_NO:
        raise ValueError(f"the verdict must be one of {', '.join(YES_NO)}, got {verdict!r}")
    texts = {CONTEXT: premise, CLAIM: claim}
    return GenerateQuestion(QuestionKind.EXPLANATION, texts, EXPLANATION_SCHEMA, {"verdict": verdict})


def ask_usefulness_for_reference(context: str, user_input: str, reference: str) -> ChoiceQuestion:
    """Is the passage useful for arriving at the reference answer? yes or no."""
    texts = {CONTEXT: context, USER_INPUT: user_input, REFERENCE: reference}
    return ChoiceQuestion(QuestionKind.USEFULNESS_FOR_REFERENCE, texts, YES_NO)


def ask_usefulness_for_response(context: str, user_input: str, response: str) -> ChoiceQuestion:
    """Is the passage useful for arriving at the response? yes or no."""
    texts = {CONTEXT: context, USER_INPUT: user_input, RESPONSE: response}
    return ChoiceQuestion(QuestionKind.USEFULNESS_FOR_RESPONSE, texts, YES_NO)


def ask_relevant_sentences(sentences: Sequence[str], user_input: str) -> GenerateQuestion:
    r"""Which of the sentences, numbered from 1, help to answer the question?

    Reply: `{"relevant": [int, ...]}`. The sentences travel as one text, one numbered line each.

    >>> ask_relevant_sentences(["Paris is in France.", "It rains."], "Where is Paris?").texts["sentences"]
    '[1] Paris is in France.\n[2] It rains.'
    """
    numbered = "\n".join(f"[{i}] {' '.join(sentence.split())}" for i, sentence in enumerate(sentences, start=1))
    return GenerateQuestion(
        QuestionKind.RELEVANT_SENTENCES, {SENTENCES: numbered, USER_INPUT: user_input}, RELEVANT_SENTENCES_SCHEMA
    )


def texts_of(sample: Sample) -> dict[str, str]:
    r"""The texts of a sample by role, those that it has: for questions that judge a sample as a whole.

    >>> texts_of(Sample(user_input="Why?", retrieved_contexts=("a", "b")))
    {'contexts': 'a\nb', 'user_input': 'Why?'}
    """
    texts = {
        CONTEXTS: sample.joined_contexts if sample.retrieved_contexts is not None else None,
        USER_INPUT: sample.user_input,
        RESPONSE: sample.response,
        REFERENCE: sample.reference,
        "reference_contexts": "\n".join(sample.reference_contexts) if sample.reference_contexts is not None else None,
    }
    return {role: text for role, text in texts.items() if text is not None}
