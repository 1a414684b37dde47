"""Tests of the panel: majority decisions, ties, probabilities and recorded votes."""

from collections.abc import Sequence
from dataclasses import replace
from threading import Barrier
from typing import Any

import pytest

from metric_core import reasons
from metric_core.calibration.sure_threshold import SureThreshold
from metric_core.errors import ConfigError, JudgeError
from metric_core.prompts.judge_questions import ChoiceQuestion, GenerateQuestion, Kind, ask_claims, ask_verdict
from metric_core.question_kinds import QuestionKind
from metric_core.records import AnswerStatus
from tasks.models.judges.panel import GENERATE_KINDS, CascadeRule, PanelJudge, combine_answers
from tasks.models.judges.protocol import ChoiceAnswer, OnChoiceAnswer, PanelVote
from tasks.models.judges.scripted import Script, ScriptedJudge
from tasks.runtime.cancellation import Cancellation, cancellable, current_cancellation
from tasks.runtime.usage import Usage
from tests.metric_core.prompts.questions import QUESTIONS
from tests.waiting import DEAD_SECONDS

VERDICT = ask_verdict("It rains.", "Rain.")
ASPECT = QUESTIONS[QuestionKind.ASPECT]
YES, NO = {"yes": 0.9, "no": 0.1}, {"yes": 0.4, "no": 0.6}


class VerdictJudge(ScriptedJudge):
    """A judge that can answer verdicts only."""

    def can_answer(self, kind: Kind) -> bool:
        return kind is QuestionKind.VERDICT


def panel(*answers: Any) -> PanelJudge:
    """Create a panel of judges a, b, ..., each with one answer to verdicts; None gives a failure."""
    scripts: list[Script] = [{} if answer is None else {"verdict": answer} for answer in answers]
    return PanelJudge([ScriptedJudge(table, name) for table, name in zip(scripts, "abcde", strict=False)])


def get_answer(*answers: Any) -> ChoiceAnswer:
    (answer,) = panel(*answers).choose([VERDICT])
    return answer


def test_the_majority_decides_and_all_votes_are_recorded() -> None:
    answer = get_answer("no", YES, "yes")
    assert (answer.status, answer.label) == (AnswerStatus.ANSWERED, "yes")
    assert answer.panel == (PanelVote("a", "no", None), PanelVote("b", "yes", 0.9), PanelVote("c", "yes", None))


@pytest.mark.parametrize("lead", ["yes", "no"])
def test_ties_go_to_the_lead(lead: str) -> None:
    other = {"yes": "no", "no": "yes"}[lead]
    assert get_answer(lead, other).label == lead
    assert get_answer(lead, other, other, lead).label == lead


def test_probabilities_are_the_mean_with_vote_shares_for_members_without_any() -> None:
    assert get_answer(YES, NO).probabilities == pytest.approx({"yes": 0.65, "no": 0.35})
    assert get_answer(YES, NO, "no").probabilities == pytest.approx({"yes": 1.3 / 3, "no": 1.7 / 3})
    assert get_answer("yes", "no").probabilities is None


def test_a_member_that_fails_leaves_the_decision_to_the_others() -> None:
    answer = get_answer(None, "no", "yes")
    assert answer.label == "no"
    assert answer.panel[0] == PanelVote("a", None, None)


def test_the_answer_fails_only_where_all_fail() -> None:
    answer = get_answer(None, None)
    assert (answer.status, answer.reason, answer.votes) == (AnswerStatus.FAILED, "not in the script", ())
    assert [vote.label for vote in answer.panel] == [None, None]


def test_a_member_is_not_asked_what_it_cannot_answer() -> None:
    able, unable = ScriptedJudge({"aspect": "1", "verdict": "no"}, "able"), VerdictJudge({"verdict": "yes"}, "unable")
    judge = PanelJudge([unable, able])
    assert isinstance(ASPECT, ChoiceQuestion)
    aspect, verdict = judge.choose([ASPECT, VERDICT])
    assert aspect.votes == ("1", "1", "1")
    assert {vote.judge for vote in aspect.panel} == {"able"}
    assert [question.kind for question in unable.asked] == [QuestionKind.VERDICT]
    assert (verdict.label, len(verdict.panel)) == ("yes", 2)
    assert judge.can_answer(QuestionKind.ASPECT)
    assert not judge.can_answer(QuestionKind.CLAIMS)


def test_a_kind_that_no_member_can_answer_is_undefined() -> None:
    judge = PanelJudge([VerdictJudge({}, "one"), VerdictJudge({}, "two")])
    assert isinstance(ASPECT, ChoiceQuestion)
    (answer,) = judge.choose([ASPECT])
    assert (answer.status, answer.reason) == (AnswerStatus.UNDEFINED, reasons.NEEDS_LANGUAGE_MODEL)


def test_each_of_several_votes_is_decided_separately() -> None:
    judges = [
        ScriptedJudge({"aspect": ["1", "0", "1"]}, "a"),
        ScriptedJudge({"aspect": ["0", "0", "1"]}, "b"),
        ScriptedJudge({"aspect": ["0", "1", None]}, "c"),
    ]
    assert isinstance(ASPECT, ChoiceQuestion)
    (answer,) = PanelJudge(judges).choose([ASPECT])
    assert answer.votes == ("0", "0", "1")
    assert [vote.label for vote in answer.panel if vote.vote == 2] == ["1", "1", None]


def test_only_the_lead_answers_generate_questions() -> None:
    lead = ScriptedJudge({"claims": {"claims": ["It rains."]}}, "lead")
    other = ScriptedJudge({"claims": {"claims": ["It pours."]}}, "other")
    (answer,) = PanelJudge([lead, other]).generate([ask_claims("It rains.", None)])
    assert answer.value == {"claims": ["It rains."]}
    assert other.asked == []


def test_members_are_asked_concurrently() -> None:
    both_asked = Barrier(2, timeout=DEAD_SECONDS)

    def answer(_question: object) -> str:
        both_asked.wait()
        return "yes"

    judges = [ScriptedJudge(answer, "a"), ScriptedJudge(answer, "b")]
    assert PanelJudge(judges).choose([VERDICT])[0].label == "yes"


class CostlyJudge(ScriptedJudge):
    """A judge whose answers all cost the same."""

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


class CachedJudge(CostlyJudge):
    """A judge whose answers are all cached."""

    stored = True


def test_usage_adds_up_without_cached_answers() -> None:
    (answer,) = PanelJudge([CostlyJudge({}, "a"), CostlyJudge({}, "b"), CachedJudge({}, "c")]).choose([VERDICT])
    assert answer.usage == Usage(requests=4, prompt_tokens=20, cached_tokens=8, output_tokens=2, seconds=0.5)
    assert not answer.stored
    (answer,) = PanelJudge([CachedJudge({}, "a"), CachedJudge({}, "b")]).choose([VERDICT])
    assert (answer.stored, answer.usage) == (True, Usage())


def test_the_callback_gets_each_decision_once() -> None:
    questions = [ask_verdict(f"claim {number}", "premise") for number in range(20)]
    received: list[tuple[int, ChoiceAnswer]] = []
    answers = panel("yes", "no", "no").choose(questions, lambda *call: received.append(call))
    assert sorted(place for place, _ in received) == list(range(20))
    assert all(answers[place] == answer for place, answer in received)


def test_an_unusable_member_makes_the_panel_fail() -> None:
    class LostJudge(ScriptedJudge):
        def choose(
            self, questions: Sequence[ChoiceQuestion], on_answer: OnChoiceAnswer | None = None
        ) -> list[ChoiceAnswer]:
            raise JudgeError(f"the judge is lost after {len(questions)} questions, telling {on_answer}")

    with pytest.raises(JudgeError, match="lost"):
        PanelJudge([ScriptedJudge({"verdict": "yes"}, "a"), LostJudge({}, "b")]).choose([VERDICT])


def test_the_fingerprint_changes_with_the_members_and_the_lead() -> None:
    one, two, three = (ScriptedJudge({"verdict": "yes"}, name) for name in ("one", "two", "three"))
    prints = [
        PanelJudge(members).fingerprint(QuestionKind.VERDICT) for members in ([one, two], [two, one], [one, two, three])
    ]
    assert len(set(prints)) == 3
    assert PanelJudge([one, two]).fingerprint(QuestionKind.CLAIMS) == one.fingerprint(QuestionKind.CLAIMS)


def test_generate_kinds_are_the_kinds_that_are_never_choices() -> None:
    generated = {kind for kind, question in QUESTIONS.items() if isinstance(question, GenerateQuestion)}
    assert generated == GENERATE_KINDS


def test_a_missing_label_of_a_member_counts_as_probability_0() -> None:
    one, both = ChoiceAnswer(AnswerStatus.ANSWERED, ("yes",), {"yes": 0.75}), {"yes": 0.25, "no": 0.75}
    found = combine_answers({"lead": one, "second": ChoiceAnswer(AnswerStatus.ANSWERED, ("no",), both)}, 1)
    assert found.probabilities == {"yes": 0.5, "no": 0.375}


def test_names_are_short_and_unique() -> None:
    judge = PanelJudge([ScriptedJudge({}, "m"), ScriptedJudge({"verdict": "no"}, "m"), ScriptedJudge({}, "n")])
    assert judge.names == ("m (1)", "m (2)", "n")
    assert (judge.identity.backend, judge.identity.model) == ("panel", "m (1) + m (2) + n")


def test_duplicate_judges_are_rejected() -> None:
    judge = PanelJudge([ScriptedJudge({"verdict": "no"}, "m"), ScriptedJudge({"verdict": "no"}, "m")])
    with pytest.raises(ConfigError, match=r"the same judge twice: m \(1\) and m \(2\)"):
        judge.reject_duplicates()
    panel("yes", "no").reject_duplicates()


def test_members_see_the_cancellation_of_the_run() -> None:
    seen: list[Cancellation] = []

    class RecordingJudge(ScriptedJudge):
        """A judge that records the current cancellation."""

        def choose(
            self, questions: Sequence[ChoiceQuestion], on_answer: OnChoiceAnswer | None = None
        ) -> list[ChoiceAnswer]:
            seen.append(current_cancellation())
            return super().choose(questions, on_answer)

    with cancellable() as cancellation:
        PanelJudge([RecordingJudge({"verdict": "yes"}, name) for name in "ab"]).choose([VERDICT])
    assert seen == [cancellation] * 2


ABOUT = "response claims by all contexts"


def cascade(cheaper: ScriptedJudge, lead: ScriptedJudge, least: float | None, writer: str = "") -> PanelJudge:
    """Create a cascade; the cheaper judge answers alone where it is so sure."""
    judge = CascadeRule(cheaper).judge
    known = [] if least is None else [SureThreshold(judge, "", ABOUT, "faithfulness", "", 0.1, least, 0.5, 60, 1, 0.08)]
    return PanelJudge([lead, cheaper], CascadeRule(cheaper, known, writer))


def test_in_a_cascade_the_lead_is_asked_what_the_other_is_not_sure_of_and_all_else() -> None:
    cheaper = ScriptedJudge({("verdict", "Sure."): YES, ("verdict", "Unsure."): {"yes": 0.7, "no": 0.3}}, "cheap")
    lead = ScriptedJudge({"verdict": "no", "aspect": ["1"] * 3}, "lead")
    questions = [replace(ask_verdict(claim, "Rain."), about=ABOUT) for claim in ("Sure.", "Unsure.", "Unknown.")]
    other = replace(ask_verdict("Sure.", "Rain."), about="reference claims by all contexts")
    assert isinstance(ASPECT, ChoiceQuestion)
    plain = [ask_verdict("Sure.", "Rain."), ASPECT]
    judge = cascade(cheaper, lead, 0.9)
    reported: dict[int, ChoiceAnswer] = {}
    answers = judge.choose([*questions, other, *plain], reported.__setitem__)
    assert [answer.label for answer in answers] == ["yes", "no", "no", "no", "no", "1"]
    assert [[vote.judge for vote in answer.panel] for answer in answers] == [
        ["cheap"],
        ["cheap", "lead"],
        ["cheap", "lead"],
        ["cheap", "lead"],
        [],
        [],
    ]
    assert answers[1].panel == (PanelVote("cheap", "yes", 0.7), PanelVote("lead", "no", None))
    assert answers[2].panel[0].label is None
    assert {position: answer.label for position, answer in reported.items()} == dict(
        enumerate(answer.label for answer in answers)
    )
    assert (len(cheaper.asked), len(lead.asked)) == (4, 5)


def test_a_cascade_is_its_lead_for_all_but_verdicts_and_its_thresholds_are_part_of_its_fingerprint() -> None:
    cheaper, lead = ScriptedJudge({"verdict": YES}, "cheap"), ScriptedJudge({"verdict": "no"}, "lead")
    judge, looser, without = (cascade(cheaper, lead, least) for least in (0.9, 0.8, None))
    assert judge.fingerprint(QuestionKind.ASPECT) == lead.fingerprint(QuestionKind.ASPECT)
    verdict = QuestionKind.VERDICT
    assert len({each.fingerprint(verdict) for each in (judge, looser, without, lead, cheaper)}) == 5
    assert (judge.identity.backend, judge.identity.model) == ("cascade", "cheap, then lead")
    # Labels of claims that another judge wrote say nothing.
    assert cascade(cheaper, lead, 0.9, writer="another").fingerprint(verdict) == without.fingerprint(verdict)
