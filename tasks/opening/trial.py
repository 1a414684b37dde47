"""Ask a judge one question, and keep what was sent to it and what came back."""

from dataclasses import dataclass

from metric_core.prompts.judge_questions import YES, ask_verdict
from metric_core.question_kinds import QuestionKind
from tasks.models.clients.request_trace import TracedRequest, trace_requests
from tasks.models.judges.protocol import ChoiceAnswer, Judge, JudgeIdentity
from tasks.models.judges.routed_judge import judge_for


@dataclass(frozen=True, slots=True)
class Trial:
    """The answer of a judge to one question.

    Args:
        judge: Identity of the judge that the question went to.
        answer: Its answer.
        requests: Requests to servers that it took; empty for a judge in this process.
    """

    judge: JudgeIdentity
    answer: ChoiceAnswer
    requests: tuple[TracedRequest, ...]

    @property
    def probability(self) -> float | None:
        """The probability of yes, in [0, 1]; None if the judge gives none."""
        return None if self.answer.probabilities is None else self.answer.probabilities.get(YES)


def try_judge(judge: Judge, passage: str, claim: str) -> Trial:
    """Ask whether a passage supports a claim.

    Args:
        judge: Judge that does not answer from the cache.

    Raises:
        JudgeError: The judge cannot be used.
    """
    asked = judge_for(judge, QuestionKind.VERDICT)
    with trace_requests() as requests:
        (answer,) = asked.choose([ask_verdict(claim, passage)])
    return Trial(asked.identity, answer, tuple(requests))
