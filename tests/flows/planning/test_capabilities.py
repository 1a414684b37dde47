"""A judge that cannot answer a kind of question: it is not asked, and a warning names the metrics."""

from collections.abc import Sequence
from typing import Any

import pytest

from flows.execution.run_warnings import warn_of_unanswerable
from flows.planning.capabilities import find_unanswerable, question_kinds
from metric_core import reasons
from metric_core.metrics.registry import METRICS, parse_request
from metric_core.prompts.judge_questions import Kind, ask_claims, ask_verdict
from metric_core.question_kinds import QuestionKind
from metric_core.records import AnswerStatus
from metric_core.stages import any_judged
from tasks.models.judges.batching import JudgeBatcher
from tasks.models.judges.panel import PanelJudge
from tasks.models.judges.protocol import ChoiceAnswer, JudgeIdentity
from tasks.models.judges.scripted import ScriptedJudge


class VerdictsOnly(ScriptedJudge):
    """A judge that answers verdicts, and raises when it is asked anything else."""

    is_language_model = True

    @property
    def identity(self) -> JudgeIdentity:
        return JudgeIdentity("custom", "verdicts only", "1", "", language_model=self.is_language_model)

    def can_answer(self, kind: Kind) -> bool:
        return kind is QuestionKind.VERDICT

    def generate(self, questions: Sequence[Any], on_answer: Any = None) -> Any:
        del on_answer
        if questions:
            raise NotImplementedError(questions[0].kind)
        return []


JUDGE = VerdictsOnly({"verdict": "yes"})


def test_every_judged_metric_needs_kinds() -> None:
    for name, metric in METRICS.items():
        if "definition" not in metric.parameters:  # a criterion has no default
            request = parse_request(name)
            assert bool(question_kinds(request)) == any_judged(request.products), name


def test_metrics_that_cannot_be_answered_are_named() -> None:
    requests = [parse_request("faithfulness"), parse_request("answer_similarity"), parse_request("nv_accuracy")]
    unable = find_unanswerable(requests, JUDGE)
    assert unable == {"faithfulness": ["claims"], "nv_accuracy": ["accuracy_1", "accuracy_2"]}
    assert "faithfulness is undefined where it needs the judge" in warn_of_unanswerable(unable)[0]


def test_a_question_that_cannot_be_answered_is_not_asked() -> None:
    batcher = JudgeBatcher(JUDGE)
    (answer,) = batcher.generate([ask_claims("It rains.", None)])
    assert (answer.status, answer.reason) == (AnswerStatus.UNDEFINED, reasons.cannot_answer("claims"))
    assert [a.label for a in batcher.choose([ask_verdict("It rains.", "Rain.")])] == ["yes"]
    assert batcher.usage.questions == 1


def test_the_reason_of_a_judge_without_a_language_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(VerdictsOnly, "is_language_model", False)
    (answer,) = JudgeBatcher(JUDGE).generate([ask_claims("It rains.", None)])
    assert answer.reason == reasons.NEEDS_LANGUAGE_MODEL


def test_a_panel_asks_its_lead_only_what_it_can_answer() -> None:
    panel = PanelJudge([JUDGE, ScriptedJudge({"claims": {"claims": []}, "verdict": "no"}, name="other")])
    (answer,) = panel.generate([ask_claims("It rains.", None)])
    assert answer.status is AnswerStatus.UNDEFINED
    received: list[tuple[int, ChoiceAnswer]] = []
    panel.choose([ask_verdict("a", "b")], lambda position, answer: received.append((position, answer)))
    assert [position for position, _ in received] == [0]
