"""Judge questions as data: the kind of question, its texts, and the answers that are allowed.

A question has a kind and texts by role. Each judge decides how to answer it: by prompting a language model or by
computation (the built-in judge). Texts come from the data and are untrusted; instructions come from the user's
configuration and are trusted.
"""

import hashlib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Self, TypeAlias

from metric_core import columns
from metric_core.columns import EARLIER_TURNS
from metric_core.prompts.reply_schemas import (
    EXPLANATION_SCHEMA,
    KEY_POINTS_SCHEMA,
    claims_schema,
    object_schema,
    questions_schema,
    relevant_sentences_schema,
)
from metric_core.prompts.templates import Places, custom_places
from metric_core.question_kinds import KindGroup, QuestionKind
from metric_core.records import Sample

_KIND_NAME = re.compile(r"[a-z][a-z0-9_]*(\.[a-z][a-z0-9_]*)+")
INDEX_QUESTION_LISTS = ("key_points", "evidence")
_MOST_ITEMS = 16
FOLLOW_UP_SCHEMA = object_schema({"question": {"type": "string"}})


class CustomKind(str):  # noqa: SLOT000 a text cannot have slots that hold values
    r"""A kind of judge question that a plugin defines, with its own prompt.

    A kind is equal to its name, so it can be compared and stored like a `QuestionKind`; its group is `ratings`.

    Args:
        name: Name with the name of the plugin in front, such as "house.names_source".
        prompt: Wording of the question. `{answer}` is where the allowed answers are listed, `{instructions}` (optional)
            where the instructions of the question are inserted. Every other placeholder is the label of a text
            (`{context}`, `{question}`, `{response}`, `{reference}`, `{claim}` or another role), on a separate line.

    Raises:
        ConfigError: If the prompt lacks `{answer}`, or a placeholder is repeated or in the wrong place.
        ValueError: If the name has no dot, or other characters than lower-case letters, digits and underscores.

    >>> kind = CustomKind("house.polite", "{response}\nIs the response polite? {answer}")
    >>> kind, kind.places.texts
    ('house.polite', ('response',))
    """

    group = KindGroup.RATINGS
    prompt: str
    places: Places

    def __new__(cls, name: str, prompt: str) -> Self:
        """Create a kind."""
        if not _KIND_NAME.fullmatch(name):
            raise ValueError(f"a custom kind of question is named plugin.kind in lower-case letters, got {name!r}")
        kind = super().__new__(cls, name)
        kind.prompt = prompt.strip("\n")
        kind.places = custom_places(kind.prompt, f"the prompt of {name}")
        return kind

    def __getnewargs__(self) -> tuple[str, str]:  # type: ignore[override]
        """Return the arguments that recreate the kind in another process."""
        return str(self), self.prompt


Kind: TypeAlias = QuestionKind | CustomKind


YES, NO = "yes", "no"


YES_NO = (YES, NO)


PARTLY = "partly"
KEY_POINT_LABELS = (YES, PARTLY, NO)
"""Labels of a question on a key point: support, partial support and no support."""


USER_INPUT, RESPONSE, REFERENCE, CONTEXTS = "user_input", "response", "reference", "contexts"


CONTEXT, CLAIM, TEXT, SENTENCES = "context", "claim", "text", "sentences"
"""Roles of the texts of a question."""


@dataclass(frozen=True, slots=True)
class ChoiceQuestion:
    """A question that is answered by one of several labels.

    Args:
        texts: Role -> untrusted text.
        labels: Allowed answers.
        instructions: Role -> trusted text from the configuration (a definition, a rubric).
        votes: Number of independent answers to collect.
        about: Verdicts that it is one of, for a cascade of judges. No judge sees it, and no digest contains it.
    """

    kind: Kind
    texts: Mapping[str, str]
    labels: tuple[str, ...]
    instructions: Mapping[str, str] = field(default_factory=dict)
    votes: int = 1
    about: str = ""


@dataclass(frozen=True, slots=True)
class GenerateQuestion:
    """A question that is answered by JSON that matches a schema.

    Args:
        texts: Role -> untrusted text.
        schema: JSON schema of the reply.
        instructions: Role -> trusted text from the configuration.
    """

    kind: Kind
    texts: Mapping[str, str]
    schema: Mapping[str, Any]
    instructions: Mapping[str, str] = field(default_factory=dict)


JudgeQuestion: TypeAlias = ChoiceQuestion | GenerateQuestion


_ENCODER = json.JSONEncoder(ensure_ascii=False)


_encode_text = json.encoder.encode_basestring


def question_digest(question: JudgeQuestion) -> str:
    """Return the digest of a question: equal questions have equal digests, whichever row they are about.

    It is the SHA-256 of the JSON, in which the order of instructions and of schema members counts, as in prompts.

    >>> question_digest(ask_verdict("It rains.", "Rain.")) == question_digest(ask_verdict("It rains.", "Rain."))
    True
    """
    texts = iter(question.texts.items())
    digest = _digest_up_to_first_text(question.kind, *next(texts, (None, ""))).copy()
    rest = "".join([f", {_encode_text(role)}: {_encode_text(text)}" for role, text in texts])
    instructions = _ENCODER.encode(question.instructions) if question.instructions else "{}"
    if isinstance(question, ChoiceQuestion):
        labels = _encode_labels(tuple(question.labels))
        rest += f'}}, "labels": {labels}, "instructions": {instructions}, "votes": {question.votes}}}'
    else:
        rest += f'}}, "schema": {_ENCODER.encode(question.schema)}, "instructions": {instructions}}}'
    digest.update(rest.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


@lru_cache(maxsize=256)
def _encode_labels(labels: tuple[str, ...]) -> str:
    return _ENCODER.encode(labels)


@lru_cache(maxsize=256)  # questions about one premise are asked in succession, and it is most of their text
def _digest_up_to_first_text(kind: Kind, role: str | None, text: str) -> "hashlib._Hash":
    first = "" if role is None else f"{_encode_text(role)}: {_encode_text(text)}"
    return hashlib.sha256(f'{{"kind": {_encode_text(kind)}, "texts": {{{first}'.encode("utf-8", "surrogatepass"))


@dataclass(frozen=True, slots=True)
class RatingRequest:
    """A rating question that a metric asks about a sample.

    Args:
        template: Name of the question, unique within a metric and a row.
    """

    template: str
    question: JudgeQuestion


LISTS: dict[str, str] = {QuestionKind.CLAIMS: "claims", QuestionKind.RELEVANT_SENTENCES: "relevant"}
"""The lists in replies that are as long as their text requires. A reply that fills its list is a reply without end."""


def ask_claims(text: str, user_input: str | None) -> GenerateQuestion:
    """Ask for the standalone claims of a text; `user_input` is the question that the text answers, if any.

    Reply: `{"claims": [str, ...]}`.
    """
    texts = {TEXT: text} if user_input is None else {USER_INPUT: user_input, TEXT: text}
    return GenerateQuestion(QuestionKind.CLAIMS, texts, claims_schema(text))


def ask_questions(response: str, count: int) -> GenerateQuestion:
    """Ask for `count` distinct questions that the response would answer.

    Reply: `{"questions": [{"question": str, "noncommittal": bool}, ...]}`.
    """
    return GenerateQuestion(QuestionKind.QUESTIONS, {RESPONSE: response}, questions_schema(count))


def ask_verdict(claim: str, premise: str) -> ChoiceQuestion:
    """Ask whether the premise supports the claim: yes or no."""
    return ChoiceQuestion(QuestionKind.VERDICT, {CONTEXT: premise, CLAIM: claim}, YES_NO)


def ask_key_point(point: str, premise: str) -> ChoiceQuestion:
    """Ask whether the premise states a key point: yes, partly or no. Judges that only compare never say partly."""
    return ChoiceQuestion(QuestionKind.KEY_POINT, {CONTEXT: premise, CLAIM: point}, KEY_POINT_LABELS)


def ask_key_points(user_input: str, passages: Sequence[str]) -> GenerateQuestion:
    """Ask for the facts that a good answer to the user question states, as far as the passages hold them.

    Reply: `{"key_points": [{"text": str, "importance": "vital" or "okay"}, ...]}`.
    """
    texts = {CONTEXT: "\n".join(passages), USER_INPUT: user_input}
    return GenerateQuestion(QuestionKind.KEY_POINT_WRITING, texts, KEY_POINTS_SCHEMA)


def ask_explanation(claim: str, premise: str, verdict: str) -> GenerateQuestion:
    """Ask for an explanation of a verdict on a claim; `verdict` is the label, yes or no.

    Reply: `{"explanation": str}`.

    Raises:
        ValueError: If the verdict is neither yes nor no.
    """
    if verdict not in YES_NO:
        raise ValueError(f"the verdict must be one of {', '.join(YES_NO)}, got {verdict!r}")
    texts = {CONTEXT: premise, CLAIM: claim}
    return GenerateQuestion(QuestionKind.EXPLANATION, texts, EXPLANATION_SCHEMA, {"verdict": verdict})


def ask_usefulness_for_reference(context: str, user_input: str, reference: str) -> ChoiceQuestion:
    """Ask whether the passage is useful for arriving at the reference answer: yes or no."""
    texts = {CONTEXT: context, USER_INPUT: user_input, REFERENCE: reference}
    return ChoiceQuestion(QuestionKind.USEFULNESS_FOR_REFERENCE, texts, YES_NO)


def ask_usefulness_for_response(context: str, user_input: str, response: str) -> ChoiceQuestion:
    """Ask whether the passage is useful for arriving at the response: yes or no."""
    texts = {CONTEXT: context, USER_INPUT: user_input, RESPONSE: response}
    return ChoiceQuestion(QuestionKind.USEFULNESS_FOR_RESPONSE, texts, YES_NO)


def ask_refusal(user_input: str, response: str) -> ChoiceQuestion:
    """Ask whether a response (or a reference) answers the user question: yes, or no for a refusal."""
    return ChoiceQuestion(QuestionKind.REFUSAL, {USER_INPUT: user_input, RESPONSE: response}, YES_NO)


def ask_relevant_sentences(sentences: Sequence[str], user_input: str) -> GenerateQuestion:
    r"""Ask which sentences, numbered from 1 in one text, help to answer the user question.

    Reply: `{"relevant": [int, ...]}`.

    >>> ask_relevant_sentences(["Paris is in France.", "It rains."], "Where is Paris?").texts["sentences"]
    '[1] Paris is in France.\n[2] It rains.'
    """
    numbered = "\n".join(f"[{i}] {' '.join(sentence.split())}" for i, sentence in enumerate(sentences, start=1))
    return GenerateQuestion(
        QuestionKind.RELEVANT_SENTENCES,
        {SENTENCES: numbered, USER_INPUT: user_input},
        relevant_sentences_schema(len(sentences)),
    )


ALL_TEXTS = (
    columns.RETRIEVED_CONTEXTS,
    columns.USER_INPUT,
    columns.RESPONSE,
    columns.REFERENCE,
    columns.REFERENCE_CONTEXTS,
    columns.CONVERSATION,
    columns.EARLIER_TURNS,
)
"""Columns whose texts a question about the sample as a whole can show."""


_ROLES = {columns.RETRIEVED_CONTEXTS: CONTEXTS}
"""Roles that differ from the name of the column."""


def texts_of(sample: Sample, names: Collection[str] = ALL_TEXTS) -> dict[str, str]:
    r"""Return the texts that a sample has, by role, for questions about the sample as a whole.

    Args:
        names: Columns to show; a metric can show only those that it declares.

    >>> texts_of(Sample(user_input="Why?", retrieved_contexts=("a", "b")))
    {'contexts': 'a\nb', 'user_input': 'Why?'}
    >>> texts_of(Sample(user_input="Why?", response="So."), ["response"])
    {'response': 'So.'}
    """
    texts = {}
    for name in ALL_TEXTS:
        value = getattr(sample, name) if name in names else None
        if value is not None:
            texts[_ROLES.get(name, name)] = value if isinstance(value, str) else "\n".join(value)
    return texts


def ask_follow_up(user_input: str, earlier_turns: str) -> GenerateQuestion:
    """Ask for a user question in words that can be understood without what was said before it.

    Reply: `{"question": str}`.
    """
    texts = {EARLIER_TURNS: earlier_turns, USER_INPUT: user_input}
    return GenerateQuestion(QuestionKind.FOLLOW_UP, texts, FOLLOW_UP_SCHEMA)


def ask_index_question(passages: Sequence[str], task: str, members: Sequence[str]) -> GenerateQuestion:
    """Ask for a question that a user of an index could ask, written from passages of it.

    Reply: a text for each of the members, or a list of texts for those in INDEX_QUESTION_LISTS.

    Args:
        passages: Passages to write from. Several are numbered.
        task: Instruction on the kind of question.
        members: Members of the reply.
    """
    numbered = passages if len(passages) == 1 else [f"[{i}] {text}" for i, text in enumerate(passages, start=1)]
    texts = {CONTEXTS: "\n\n".join(numbered)}
    listed = {"type": "array", "items": {"type": "string"}, "maxItems": _MOST_ITEMS}
    schema = object_schema({name: listed if name in INDEX_QUESTION_LISTS else {"type": "string"} for name in members})
    return GenerateQuestion(QuestionKind.INDEX_QUESTION, texts, schema, {"task": task})


def ask_rating_explanation(question: JudgeQuestion, value: str) -> GenerateQuestion:
    """Ask for an explanation of the answer to a rating question.

    Reply: `{"explanation": str}`.

    Args:
        value: Its answer, a label or a number.

    >>> asked = ChoiceQuestion(QuestionKind.ASPECT, {RESPONSE: "Hi!"}, ("1", "0"), {"definition": "Is it polite?"})
    >>> ask_rating_explanation(asked, "1").instructions
    {'definition': 'Is it polite?', 'allowed answers': '1, 0', 'answer': '1'}
    """
    instructions = dict(question.instructions)
    if subject := _subject_of(question.kind):
        instructions["question"] = subject
    if isinstance(question, ChoiceQuestion):
        instructions["allowed answers"] = ", ".join(question.labels)
    instructions["answer"] = value
    return GenerateQuestion(QuestionKind.RATING_EXPLANATION, question.texts, EXPLANATION_SCHEMA, instructions)


def _subject_of(kind: Kind) -> str:
    """Return what the prompt of a kind asks, for a kind whose questions do not say it in their instructions."""
    if not isinstance(kind, CustomKind):
        return kind.subject
    lines = (line for line in kind.prompt.splitlines() if not line.startswith("{"))
    return " ".join(" ".join(lines).replace("{answer}", "").replace("{instructions}", "").split())
