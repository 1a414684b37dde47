"""The kinds of questions that are written from an index: the judge's instructions, and how its question is checked.

A kind is one declaration in KINDS.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from metric_core.metrics.graded_rankings import ask_passage_relevance
from metric_core.prompts.judge_questions import CONTEXTS, NO, USER_INPUT, YES, YES_NO, ChoiceQuestion, ask_verdict
from metric_core.question_kinds import QuestionKind
from tasks.index_questions.written_question import WrittenQuestion

_ANSWER = (
    "answer: what is asked for, complete and short, from the text alone. key_points: the facts that any right answer "
    "states, each as a short sentence that is clear by itself. evidence: the sentences of the text that hold the "
    "answer, copied word for word, no more than are needed."
)

ANSWERED = ("question", "answer", "key_points", "evidence")
"""Members of the reply for a question that the passages answer."""


class Partner(StrEnum):
    """The passage that is shown beside a first one: the next of its document, or the nearest of another one."""

    NEXT = "next"
    NEAREST_ELSEWHERE = "nearest_elsewhere"


@dataclass(frozen=True, slots=True)
class Check:
    """Questions to the judge that decide whether a written question is kept.

    Args:
        rejected: Fault of a question that does not pass.
        ask: Function that returns the questions, from the written one and the passages of the index nearest to it.
        wanted: Answers with which it passes; each question must get one of them.
    """

    rejected: str
    ask: Callable[[WrittenQuestion, Sequence[str]], Sequence[ChoiceQuestion]]
    wanted: frozenset[str]


def _ask_sufficiency(user_input: str, text: str) -> ChoiceQuestion:
    return ChoiceQuestion(QuestionKind.SUFFICIENCY, {CONTEXTS: text, USER_INPUT: user_input}, YES_NO)


SUPPORTED = Check(
    "its evidence does not support its answer",
    lambda written, _: [ask_verdict(written.reference, written.evidence)],
    frozenset({YES}),
)
POINTS_SUPPORTED = Check(
    "its evidence does not support a key point",
    lambda written, _: [ask_verdict(point, written.evidence) for point in written.key_points],
    frozenset({YES}),
)
ANSWERABLE = Check(
    "its evidence does not answer it",
    lambda written, _: [_ask_sufficiency(written.asked, written.evidence)],
    frozenset({YES}),
)
NOT_GIVEN_AWAY = Check(
    "the question alone holds the answer",
    lambda written, _: [ask_verdict(written.reference, written.asked)],
    frozenset({NO}),
)
NEEDS_ALL = Check(
    "one piece of its evidence alone answers it",
    lambda written, _: [_ask_sufficiency(written.asked, span.text) for span in written.spans],
    frozenset({NO}),
)
UNANSWERED = Check(
    "a passage of the index answers it",
    lambda written, nearest: [ask_passage_relevance(written.asked, text) for text in nearest],
    frozenset({"0", "1"}),
)

_OF_AN_ANSWER = (SUPPORTED, POINTS_SUPPORTED, NOT_GIVEN_AWAY, ANSWERABLE)


@dataclass(frozen=True, slots=True)
class IndexQuestionKind:
    """A kind of question.

    Args:
        summary: Description in a few words.
        task: Instruction to the judge; empty for a kind that is written without a language model.
        one_in: Number of chunks of the index for each question.
        partner: The second passage that the judge is shown; None to show one.
        members: Members of the judge's reply.
        checks: Checks that a question must pass, cheapest first.
    """

    name: str
    summary: str
    task: str = ""
    one_in: int = 1
    partner: Partner | None = None
    members: tuple[str, ...] = ANSWERED
    checks: tuple[Check, ...] = _OF_AN_ANSWER

    @property
    def is_unanswerable(self) -> bool:
        """True if the index must not answer the question."""
        return UNANSWERED in self.checks


SINGLE_FACT = IndexQuestionKind(
    "single_fact",
    "one fact of one passage",
    f"Ask for one fact of the text: the one that users need most often. {_ANSWER}",
)
COMPARISON = IndexQuestionKind(
    "comparison",
    "what differs between two documents",
    "Ask for a comparison of two things, of which one is in passage [1] and the other in passage [2], by something "
    "that both passages say. Without either passage it cannot be answered. If they have nothing in common that a user "
    f"would compare, question is empty. {_ANSWER}",
    one_in=100,
    partner=Partner.NEAREST_ELSEWHERE,
    checks=(*_OF_AN_ANSWER, NEEDS_ALL),
)
SEVERAL_PASSAGES = IndexQuestionKind(
    "several_passages",
    "facts of two passages of a document",
    "Ask for something that takes a fact of passage [1] and a fact of passage [2] together, such as a condition and "
    "what follows from it. Without either passage it cannot be answered. If there is no such thing, question is empty. "
    f"{_ANSWER}",
    one_in=50,
    partner=Partner.NEXT,
    checks=(*_OF_AN_ANSWER, NEEDS_ALL),
)
UNANSWERABLE = IndexQuestionKind(
    "unanswerable",
    "near a passage, and not answered by the index",
    "Ask for something close to what the text is about that a user would expect to find there, and that it does not "
    "say. It presumes nothing that is false.",
    one_in=10,
    members=("question",),
    checks=(UNANSWERED,),
)
FOLLOW_UP = IndexQuestionKind(
    "follow_up",
    "the second question of a conversation",
    "first_question: a question that the text answers, clear by itself. first_answer: its answer. question: what "
    'the user asks next, in few words that are clear only after the first question (such as "And at weekends?"), and '
    f"that the text answers too. {_ANSWER}",
    one_in=10,
    members=("first_question", "first_answer", *ANSWERED),
)
CLOZE = IndexQuestionKind("cloze", "a sentence with its figure or name asked for", checks=())
TITLE = IndexQuestionKind("title", "what a section says", one_in=4, checks=())

KINDS: Mapping[str, IndexQuestionKind] = {
    kind.name: kind for kind in (SINGLE_FACT, COMPARISON, SEVERAL_PASSAGES, UNANSWERABLE, FOLLOW_UP, CLOZE, TITLE)
}
"""All kinds. Those without a task are written without a language model."""
