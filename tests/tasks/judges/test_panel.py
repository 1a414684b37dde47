"""A panel: the majority of its judges, ties to the lead, and everybody's label kept."""

from collections.abc import Sequence
from threading import Barrier
from typing import Any

import pytest

from metric_core import reasons
from metric_core.errors import ConfigError, JudgeError
from metric_core.judge_questions import ChoiceQuestion, GenerateQuestion, QuestionKind, ask_claims, ask_verdict
from metric_core.records import AnswerStatus
from tasks.judges.panel import GENERATE_KINDS, PanelJudge, combine_answers
from tasks.judges.protocol import ChoiceAnswer, OnChoiceAnswer, PanelVote
from tasks.judges.scripted import Script, ScriptedJudge
from tasks.runtime.cancellation import Cancellation, cancellable, current_cancellation
from tasks.runtime.usage import Usage
from tests.metric_core.prompts.questions import QUESTIONS

VERDICT = ask_verdict("It rains.", "Rain.")
ASPECT = QUESTIONS[QuestionKind.ASPECT]
YES, NO = {"yes": 0.9, "no": 0.1}, {"yes": 0.4, "no": 0.6}


class Unable(ScriptedJudge):
    """Can be asked for verdicts only."""

    def can_answer(self, kind: QuestionKind) -> bool:
        return kind is QuestionKind.VERDICT


def panel(*answers: Any) -> PanelJudge:
    """Judges a, b, ..., each with one answer to verdicts; None: a failure."""
    scripts: list[Script] = [{} if answer is None else {"verdict": answer} for answer in answers]
    return PanelJudge([ScriptedJudge(table, name) for table, name in zip(scripts, "abcde", strict=False)])


def answer_of(*answers: Any) -> ChoiceAnswer:
    (answer,) = panel(*answers).choose([VERDICT])
    return answer


def test_the_majority_decides_and_everybody_is_quoted() -> None:
    answer = answer_of("no", YES, "yes")
    assert (answer.status, answer.label) == (AnswerStatus.ANSWERED, "yes")
    assert answer.panel == (PanelVote("a", "no", None), PanelVote("b", "yes", 0.9), PanelVote("c", "yes", None))


@pytest.mark.parametrize("lead", ["yes", "no"])
def test_ties_go_to_the_lead(lead: str) -> None:
    other = {"yes": "no", "no": "yes"}[lead]
    assert answer_of(lead, other).label == lead
    assert answer_of(lead, other, other, lead).label == lead


def test_probabilities_are_the_mean_and_a_member_without_any_is_as_sure_as_its_vote() -> None:
    assert answer_of(YES, NO).probabilities == pytest.approx({"yes": 0.65, "no": 0.35})
    assert answer_of(YES, NO, "no").probabilities == pytest.approx({"yes": 1.3 / 3, "no": 1.7 / 3})
    assert answer_of("yes", "no").probabilities is None


def test_a_member_that_fails_leaves_the_decision_to_the_others() -> None:
    answer = answer_of(None, "no", "yes")
    assert answer.label == "no"
    assert answer.panel[0] == PanelVote("a", None, None)


def test_the_answer_fails_only_where_all_fail() -> None:
    answer = answer_of(None, None)
    assert (answer.status, answer.reason, answer.votes) == (AnswerStatus.FAILED, "not in the script", ())
    assert [vote.label for vote in answer.panel] == [None, None]


def test_a_member_is_not_asked_what_it_can_not_answer() -> None:
    able, unable = ScriptedJudge({"aspect": "1", "verdict": "no"}, "able"), Unable({"verdict": "yes"}, "unable")
    judge = PanelJudge([unable, able])
    assert isinstance(ASPECT, ChoiceQuestion)
    aspect, verdict = judge.choose([ASPECT, VERDICT])
    assert aspect.votes == ("1", "1", "1")
    assert {vote.judge for vote in aspect.panel} == {"able"}
    assert [question.kind for question in unable.asked] == [QuestionKind.VERDICT]
    assert (verdict.label, len(verdict.panel)) == ("yes", 2)
    assert judge.can_answer(QuestionKind.ASPECT)
    assert not judge.can_answer(QuestionKind.CLAIMS)


def test_what_no_member_can_answer_is_undefined() -> None:
    judge = PanelJudge([Unable({}, "one"), Unable({}, "two")])
    assert isinstance(ASPECT, ChoiceQuestion)
    (answer,) = judge.choose([ASPECT])
    assert (answer.status, answer.reason) == (AnswerStatus.UNDEFINED, reasons.NEEDS_LANGUAGE_MODEL)


def test_each_of_several_votes_is_decided_by_itself() -> None:
    judges = [
        ScriptedJudge({"aspect": ["1", "0", "1"]}, "a"),
        ScriptedJudge({"aspect": ["0", "0", "1"]}, "b"),
        ScriptedJudge({"aspect": ["0", "1", None]}, "c"),
    ]
    assert isinstance(ASPECT, ChoiceQuestion)
    (answer,) = PanelJudge(judges).choose([ASPECT])
    assert answer.votes == ("0", "0", "1")
    assert [vote.label for vote in answer.panel if vote.vote == 2] == ["1", "1", None]


def test_texts_are_written_by_the_lead_alone() -> None:
    lead = ScriptedJudge({"claims": {"claims": ["It rains."]}}, "lead")
    other = ScriptedJudge({"claims": {"claims": ["It pours."]}}, "other")
    (answer,) = PanelJudge([lead, other]).generate([ask_claims("It rains.", None)])
    assert answer.value == {"claims": ["It rains."]}
    assert other.asked == []


def test_members_are_asked_at_the_same_time() -> None:
    both_are_here = Barrier(2, timeout=20)

    def answer(_question: object) -> str:
        both_are_here.wait()
        return "yes"

    judges = [ScriptedJudge(answer, "a"), ScriptedJudge(answer, "b")]
    assert PanelJudge(judges).choose([VERDICT])[0].label == "yes"


class Costly(ScriptedJudge):
    """Every answer costs the same, unless it is stored."""

    stored = False

    def choose(
        self, questions: Sequence[ChoiceQuestion], on_answer: OnChoiceAnswer | None = None
    ) -> list[ChoiceAnswer]:
        del on_answer
        usage = Usage(requests=2, prompt_tokens=10, cached_tokens=4, output_tokens=1, seconds=0.5)
        return [
            ChoiceAnswer(AnswerStatus.ANSWERED, ("yes",), usage=usage, stored=self.stored, reply="yes")
            for _ in questions
        ]


class Stored(Costly):
    """Knows every answer already."""

    stored = True


def test_costs_add_up_and_what_was_stored_costs_nothing() -> None:
    (answer,) = PanelJudge([Costly({}, "a"), Costly({}, "b"), Stored({}, "c")]).choose([VERDICT])
    assert answer.usage == Usage(requests=4, prompt_tokens=20, cached_tokens=8, output_tokens=2, seconds=0.5)
    assert not answer.stored
    (answer,) = PanelJudge([Stored({}, "a"), Stored({}, "b")]).choose([VERDICT])
    assert (answer.stored, answer.usage) == (True, Usage())


def test_decisions_are_told_as_soon_as_they_are_there_each_once() -> None:
    questions = [ask_verdict(f"claim {number}", "premise") for number in range(20)]
    told: list[tuple[int, ChoiceAnswer]] = []
    answers = panel("yes", "no", "no").choose(questions, lambda *one: told.append(one))
    assert sorted(place for place, _ in told) == list(range(20))
    assert all(answers[place] == answer for place, answer in told)


def test_a_member_that_can_not_be_used_ends_the_panel() -> None:
    class Lost(ScriptedJudge):
        def choose(
            self, questions: Sequence[ChoiceQuestion], on_answer: OnChoiceAnswer | None = None
        ) -> list[ChoiceAnswer]:
            raise JudgeError(f"the judge is lost after {len(questions)} questions, telling {on_answer}")

    with pytest.raises(JudgeError, match="lost"):
        PanelJudge([ScriptedJudge({"verdict": "yes"}, "a"), Lost({}, "b")]).choose([VERDICT])


def test_the_fingerprint_changes_with_those_who_are_asked_and_with_the_lead() -> None:
    one, two, three = (ScriptedJudge({"verdict": "yes"}, name) for name in ("one", "two", "three"))
    prints = [
        PanelJudge(members).fingerprint(QuestionKind.VERDICT) for members in ([one, two], [two, one], [one, two, three])
    ]
    assert len(set(prints)) == 3
    assert PanelJudge([one, two]).fingerprint(QuestionKind.CLAIMS) == one.fingerprint(QuestionKind.CLAIMS)


def test_only_kinds_that_are_never_choices_count_as_written() -> None:
    written = {kind for kind, question in QUESTIONS.items() if isinstance(question, GenerateQuestion)}
    assert written == GENERATE_KINDS


def test_a_judge_that_tells_of_one_label_only_leaves_the_others_theirs() -> None:
    one, both = ChoiceAnswer(AnswerStatus.ANSWERED, ("yes",), {"yes": 0.75}), {"yes": 0.25, "no": 0.75}
    found = combine_answers({"lead": one, "second": ChoiceAnswer(AnswerStatus.ANSWERED, ("no",), both)}, 1)
    assert found.probabilities == {"yes": 0.5, "no": 0.375}


def test_names_are_short_and_different() -> None:
    judge = PanelJudge([ScriptedJudge({}, "m"), ScriptedJudge({"verdict": "no"}, "m"), ScriptedJudge({}, "n")])
    assert judge.names == ("m (1)", "m (2)", "n")
    assert (judge.identity.backend, judge.identity.model) == ("panel", "m (1) + m (2) + n")


def test_the_same_judge_twice_is_refused() -> None:
    judge = PanelJudge([ScriptedJudge({"verdict": "no"}, "m"), ScriptedJudge({"verdict": "no"}, "m")])
    with pytest.raises(ConfigError, match=r"the same judge twice: m \(1\) and m \(2\)"):
        judge.reject_duplicates()
    panel("yes", "no").reject_duplicates()


def test_members_hear_of_it_when_the_run_is_interrupted() -> None:
    heard: list[Cancellation] = []

    class Hearing(ScriptedJudge):
        """Notes whose work it does."""

        def choose(
            self, questions: Sequence[ChoiceQuestion], on_answer: OnChoiceAnswer | None = None
        ) -> list[ChoiceAnswer]:
            heard.append(current_cancellation())
            return super().choose(questions, on_answer)

    with cancellable() as interruption:
        PanelJudge([Hearing({"verdict": "yes"}, name) for name in "ab"]).choose([VERDICT])
    assert heard == [interruption] * 2
