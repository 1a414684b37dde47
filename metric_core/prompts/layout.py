"""Lay out the texts and values in the prompt of each kind of question, with the labels of the texts' fences."""

from collections.abc import Iterable, Mapping
from functools import lru_cache

from metric_core.prompts import judge_questions as q
from metric_core.prompts.judge_questions import CustomKind
from metric_core.prompts.judge_questions import Kind as AnyKind
from metric_core.prompts.templates import ALL_TEXTS, Places
from metric_core.question_kinds import QuestionKind as Kind

CONTEXT, EARLIER_TURNS = "context", "earlier_turns"
QUESTION, RESPONSE, REFERENCE, CLAIM, RUBRIC = "question", "response", "reference", "claim", "rubric"
ANSWER, INSTRUCTIONS, COUNT = "answer", "instructions", "count"
LABELS, SCHEMA = "labels", "schema"

_LABEL_OF_ROLE = {
    q.CONTEXTS: CONTEXT,
    q.CONTEXT: CONTEXT,
    q.SENTENCES: CONTEXT,
    q.USER_INPUT: QUESTION,
    q.TEXT: RESPONSE,
    "rubrics": RUBRIC,
}
_ORDER = (CONTEXT, "reference_contexts", "conversation", EARLIER_TURNS, QUESTION, RESPONSE, REFERENCE, CLAIM, RUBRIC)

_ACCURACY = Places((QUESTION, RESPONSE, REFERENCE), (ANSWER,))
_CONTEXT_RELEVANCE = Places((CONTEXT, QUESTION), (ANSWER,))
_GROUNDEDNESS = Places((CONTEXT, RESPONSE), (ANSWER,))
_BY_INSTRUCTIONS = Places((ALL_TEXTS,), (INSTRUCTIONS, ANSWER))

PLACES: dict[Kind, Places] = {
    Kind.FOLLOW_UP: Places((EARLIER_TURNS, QUESTION), (ANSWER,)),
    Kind.CLAIMS: Places((QUESTION, RESPONSE), (ANSWER,), optional=(QUESTION,)),
    Kind.QUESTIONS: Places((RESPONSE,), (COUNT, ANSWER)),
    Kind.VERDICT: Places((CONTEXT, CLAIM), (ANSWER,)),
    Kind.USEFULNESS_FOR_REFERENCE: Places((CONTEXT, QUESTION, REFERENCE), (ANSWER,)),
    Kind.USEFULNESS_FOR_RESPONSE: Places((CONTEXT, QUESTION, RESPONSE), (ANSWER,)),
    Kind.RELEVANT_SENTENCES: Places((CONTEXT, QUESTION), (ANSWER,)),
    Kind.KEY_POINT: Places((CONTEXT, CLAIM), (ANSWER,)),
    Kind.ACCURACY_1: _ACCURACY,
    Kind.ACCURACY_2: _ACCURACY,
    Kind.CONTEXT_RELEVANCE_1: _CONTEXT_RELEVANCE,
    Kind.CONTEXT_RELEVANCE_2: _CONTEXT_RELEVANCE,
    Kind.GROUNDEDNESS_1: _GROUNDEDNESS,
    Kind.GROUNDEDNESS_2: _GROUNDEDNESS,
    Kind.ASPECT: _BY_INSTRUCTIONS,
    Kind.CRITERIA_CATEGORY: _BY_INSTRUCTIONS,
    Kind.CRITERIA_INTEGER: _BY_INSTRUCTIONS,
    Kind.CRITERIA_NUMBER: _BY_INSTRUCTIONS,
    Kind.RUBRIC: _BY_INSTRUCTIONS,
    Kind.INSTANCE_RUBRIC: Places((ALL_TEXTS, RUBRIC), (ANSWER,)),
    Kind.REFUSAL: Places((QUESTION, RESPONSE), (ANSWER,)),
    Kind.PASSAGE_RELEVANCE: Places((CONTEXT, QUESTION), (ANSWER,)),
    Kind.SUFFICIENCY: Places((CONTEXT, QUESTION), (ANSWER,)),
    Kind.EXPLANATION: Places((CONTEXT, CLAIM), (INSTRUCTIONS, ANSWER)),
    Kind.RATING_EXPLANATION: _BY_INSTRUCTIONS,
    Kind.KEY_POINT_WRITING: Places((CONTEXT, QUESTION), (ANSWER,)),
    Kind.INDEX_QUESTION: Places((CONTEXT,), (INSTRUCTIONS, ANSWER)),
}
"""Placeholders that the template of each kind must have. The rubric of a row is untrusted data, so it is fenced."""

ANSWER_CHOICE, ANSWER_JSON = Places(values=(LABELS,)), Places(values=(SCHEMA,))
"""Placeholders that the two templates of answer instructions must have."""


def label_texts(texts: Mapping[str, str]) -> dict[str, str]:
    """Return texts by label instead of role, in the order in which prompts show them.

    Raises:
        ValueError: If two texts have the same label.

    >>> list(label_texts({"user_input": "Why?", "contexts": "Because."}))
    ['context', 'question']
    """
    return {label: texts[role] for label, role in _label_roles(tuple(texts))}


@lru_cache(maxsize=256)  # few questions have other roles
def _label_roles(roles: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return the label and the role of each text, in the order in which prompts show them."""
    by_label: dict[str, str] = {}
    for role in roles:
        label = _LABEL_OF_ROLE.get(role, role)
        if label in by_label:
            raise ValueError(
                f"two texts have the label {label!r}; a question has one text per label: {', '.join(roles)}"
            )
        by_label[label] = role
    return [(label, by_label[label]) for label in sorted(by_label, key=_rank)]


def places_of(kind: AnyKind) -> Places:
    """Return the placeholders of the template of a kind."""
    return kind.places if isinstance(kind, CustomKind) else PLACES[kind]


def check_texts(kind: AnyKind, labels: Iterable[str]) -> None:
    """Check that a question has the texts of its kind.

    Raises:
        ValueError: If a text is missing, or the prompt has no placeholder for it.
    """
    places, given = places_of(kind), frozenset(labels)
    if not _are_shown(places, given):
        wanted, got = ", ".join(places.texts), ", ".join(sorted(given)) or "none"
        raise ValueError(f"a question of kind {kind} has the texts {wanted}, got {got}")


@lru_cache(maxsize=256)
def _are_shown(places: Places, given: frozenset[str]) -> bool:
    """Return whether these are the texts of a template."""
    missing = set(places.texts) - {ALL_TEXTS, *places.optional} - given
    extra = set() if ALL_TEXTS in places.texts else given - set(places.texts)
    return not (missing or extra)


def _rank(label: str) -> int:
    return _ORDER.index(label) if label in _ORDER else len(_ORDER)
