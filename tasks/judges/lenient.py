"""Agree with everything: a judge that answers every choice question with its first label."""

from collections.abc import Sequence

from metric_core.judge_questions import ChoiceQuestion, GenerateQuestion, QuestionKind
from metric_core.records import AnswerStatus
from tasks.judges.protocol import (
    ChoiceAnswer,
    GenerateAnswer,
    JudgeIdentity,
    OnChoiceAnswer,
    OnGenerateAnswer,
    notify_all,
)


class LenientJudge:
    """A judge that answers every choice question with its first label, and writes nothing."""

    @property
    def identity(self) -> JudgeIdentity:
        """The identity of the judge."""
        return JudgeIdentity("lenient", "first label", "1", "It agrees with everything.", language_model=False)

    def can_answer(self, kind: QuestionKind) -> bool:
        """Return True for verdicts."""
        return kind is QuestionKind.VERDICT

    def fingerprint(self, kind: QuestionKind) -> str:
        """Return what determines the answers to a kind of question."""
        return f"lenient 1 {kind}"

    def choose(
        self, questions: Sequence[ChoiceQuestion], on_answer: OnChoiceAnswer | None = None
    ) -> list[ChoiceAnswer]:
        """Answer each question with its first label."""
        answers = [
            ChoiceAnswer(AnswerStatus.ANSWERED, (question.labels[0],) * question.votes) for question in questions
        ]
        notify_all(answers, on_answer)
        return answers

    def generate(
        self, questions: Sequence[GenerateQuestion], on_answer: OnGenerateAnswer | None = None
    ) -> list[GenerateAnswer]:
        """Answer no question."""
        answers = [GenerateAnswer(AnswerStatus.UNDEFINED, reason="it writes nothing") for _ in questions]
        notify_all(answers, on_answer)
        return answers
