"""Several judges as one: who is asked what, what a fingerprint depends on, and sentences in place of claims."""

from collections.abc import Collection
from typing import Any

import pytest

from metric_core.prompts.judge_questions import ChoiceQuestion, CustomKind, Kind, ask_claims, ask_verdict
from metric_core.question_kinds import KindGroup, QuestionKind
from metric_core.records import AnswerStatus
from tasks.models.judges.batching import JudgeBatcher
from tasks.models.judges.builtin.sentence_claims import NOTE, SentenceClaims
from tasks.models.judges.panel import PanelJudge
from tasks.models.judges.protocol import ROUTED
from tasks.models.judges.routed_judge import RoutedJudge, members_of, needs_sentences, roles_of, settings_for
from tasks.models.judges.scripted import Script, ScriptedJudge
from tasks.opening.local_models import load_pipeline
from tasks.options.judge_options import JudgeOptions, JudgeSettings
from tasks.options.language_options import LanguageSettings
from tests.metric_core.prompts.questions import QUESTIONS

VERDICT, CLAIMS = ask_verdict("It rains.", "Rain."), ask_claims("It rains.", None)
ASPECT = QUESTIONS[QuestionKind.ASPECT]
ANSWERS: Script = {"verdict": "yes", "claims": {"claims": ["It rains."]}, "aspect": "1"}


class Named(ScriptedJudge):
    """A judge that answers only some kinds of questions."""

    def __init__(self, name: str, only: Collection[str] | None = None) -> None:
        super().__init__(ANSWERS, name)
        self.only = only

    def can_answer(self, kind: Kind) -> bool:
        return self.only is None or str(kind) in self.only

    @property
    def kinds(self) -> list[str]:
        return [str(question.kind) for question in self.asked]


def sentences() -> SentenceClaims:
    return SentenceClaims(lambda: load_pipeline(LanguageSettings()))


def test_every_kind_of_question_has_a_group_and_those_of_plugins_are_ratings() -> None:
    assert {kind.group for kind in QuestionKind} == set(KindGroup)
    assert CustomKind("house.polite", "{response}\nIs it polite? {answer}").group is KindGroup.RATINGS


def test_each_question_goes_to_the_judge_of_its_group_in_the_order_of_the_questions() -> None:
    writer, verifier = Named("writer"), Named("verifier")
    judge = RoutedJudge(writer, {KindGroup.VERDICTS: verifier})
    assert isinstance(ASPECT, ChoiceQuestion)
    seen: list[int] = []
    answers = judge.choose([VERDICT, ASPECT, VERDICT], lambda position, _answer: seen.append(position))
    assert [answer.label for answer in answers] == ["yes", "1", "yes"]
    assert sorted(set(seen)) == [0, 1, 2]
    (claims,) = judge.generate([CLAIMS])
    assert claims.value == {"claims": ["It rains."]}
    assert (writer.kinds, verifier.kinds) == (["aspect", "claims"], ["verdict", "verdict"])


def test_a_question_that_the_judge_of_its_group_cannot_answer_goes_to_the_default_judge() -> None:
    writer, verifier = Named("writer"), Named("verifier", {"verdict"})
    judge = RoutedJudge(writer, {KindGroup.VERDICTS: verifier})
    assert judge.judge_for(QuestionKind.VERDICT) is verifier
    assert judge.judge_for(QuestionKind.USEFULNESS_FOR_REFERENCE) is writer
    assert all(judge.can_answer(kind) for kind in QuestionKind)


def test_the_fingerprint_of_a_kind_is_that_of_the_judge_that_is_asked() -> None:
    writer, verifier, other = Named("writer"), Named("verifier"), Named("other")
    other.fingerprint = lambda kind: f"other {kind}"  # type: ignore[method-assign]
    before = RoutedJudge(writer, {KindGroup.VERDICTS: verifier})
    swapped_verifier = RoutedJudge(writer, {KindGroup.VERDICTS: other})
    swapped_writer = RoutedJudge(other, {KindGroup.VERDICTS: verifier})
    verdict, claims = QuestionKind.VERDICT, QuestionKind.CLAIMS
    assert before.fingerprint(verdict) == verifier.fingerprint(verdict)
    assert before.fingerprint(claims) == swapped_verifier.fingerprint(claims) == writer.fingerprint(claims)
    assert before.fingerprint(verdict) == swapped_writer.fingerprint(verdict) != swapped_verifier.fingerprint(verdict)
    assert before.fingerprint(claims) != swapped_writer.fingerprint(claims)


def test_a_judge_that_answers_every_group_keeps_its_identity_and_several_are_named() -> None:
    one, other = Named("one"), Named("other")
    assert RoutedJudge(one, {KindGroup.RATINGS: one}).identity == one.identity
    identity = RoutedJudge(one, {KindGroup.VERDICTS: other}).identity
    assert (identity.backend, identity.model) == (ROUTED, "other (verdicts) + one (writing, ratings)")
    assert (
        identity.note
        == "Groups of questions have judges of their own: other answers verdicts; one answers writing and ratings."
    )
    assert identity.revision != RoutedJudge(other, {KindGroup.VERDICTS: one}).identity.revision


def test_roles_say_who_answers_what_and_leave_out_who_is_not_asked() -> None:
    writer, verifier = Named("writer"), Named("verifier", {"verdict"})
    judge = RoutedJudge(writer, {KindGroup.VERDICTS: verifier, KindGroup.RATINGS: Named("rater")})
    kinds = [QuestionKind.CLAIMS, QuestionKind.VERDICT, QuestionKind.USEFULNESS_FOR_REFERENCE]
    found = {
        role.name: ([str(kind) for kind in role.kinds], list(map(str, role.groups))) for role in judge.roles(kinds)
    }
    assert found == {
        "writer": (["claims", "usefulness_for_reference"], ["verdicts", "writing"]),
        "verifier": (["verdict"], ["verdicts"]),
    }
    (alone,) = roles_of(writer, kinds)
    assert (alone.judge, alone.kinds) == (writer, tuple(kinds))


def test_without_a_judge_that_writes_sentences_are_claims_and_the_note_says_so() -> None:
    verifier = Named("verifier", {"verdict"})
    assert needs_sentences(verifier, {})
    assert not needs_sentences(verifier, {KindGroup.WRITING: Named("writer")})
    judge = RoutedJudge(verifier, {}, sentences())
    text = "Hello! Paris lies on the Seine, and it has two million inhabitants. What else?"
    (answer,) = judge.generate([ask_claims(text, None)])
    assert answer.value == {"claims": ["Paris lies on the Seine, and it has two million inhabitants."]}
    assert (judge.identity.model, judge.identity.backend) == ("verifier", "scripted")
    assert judge.identity.note.endswith(NOTE)
    assert [role.judge.identity.backend for role in judge.roles(list(QuestionKind))] == ["scripted", "sentences"]
    assert not judge.can_answer(QuestionKind.QUESTIONS)
    assert judge.can_answer(QuestionKind.CLAIMS)
    assert verifier.kinds == []


def test_a_question_that_no_judge_can_answer_is_undefined_and_not_asked() -> None:
    verifier = Named("verifier", {"verdict"})
    batcher = JudgeBatcher(RoutedJudge(verifier, {}, sentences()))
    (answer,) = batcher.generate([QUESTIONS[QuestionKind.QUESTIONS]])  # type: ignore[list-item]
    assert (answer.status, answer.reason) == (
        AnswerStatus.UNDEFINED,
        "the judge cannot answer questions of kind questions",
    )
    assert verifier.kinds == []


def test_usage_is_counted_by_kind_of_question() -> None:
    batcher = JudgeBatcher(RoutedJudge(Named("writer"), {KindGroup.VERDICTS: Named("verifier")}))
    batcher.choose([VERDICT, VERDICT, ask_verdict("It snows.", "Rain.")])
    batcher.generate([CLAIMS])
    kinds = batcher.usage.kinds
    assert {kind: cost.questions for kind, cost in kinds.items()} == {"verdict": 2, "claims": 1}
    assert sum(cost.questions for cost in (batcher.usage + batcher.usage).kinds.values()) == 6


def test_a_panel_may_judge_a_group_and_its_members_are_named() -> None:
    writer, one, other = Named("writer"), Named("one"), Named("other")
    panel = PanelJudge([one, other])
    judge = RoutedJudge(writer, {KindGroup.VERDICTS: panel})
    (answer,) = judge.choose([VERDICT])
    assert [vote.judge for vote in answer.panel] == ["one", "other"]
    assert members_of(judge) == (writer, one, other)
    assert (writer.kinds, one.kinds, other.kinds) == ([], ["verdict"], ["verdict"])


def test_the_settings_of_a_kind_are_those_of_the_judge_that_answers_it() -> None:
    options = JudgeOptions.model_validate(
        {"judge": {"verdicts": {"backend": "scripted", "panel": ["builtin"]}}, "panel": []}
    )
    judge = RoutedJudge(Named("writer"), {KindGroup.VERDICTS: Named("verifier", {"verdict"})})
    backends = {
        kind: [each.backend for each in settings_for(options, judge, kind)]
        for kind in (QuestionKind.VERDICT, QuestionKind.USEFULNESS_FOR_RESPONSE, QuestionKind.CLAIMS)
    }
    assert list(backends.values()) == [["scripted", "builtin"], ["builtin"], ["builtin"]]


@pytest.mark.parametrize(
    "options", [{"panel": [{"verdicts": "builtin"}]}, {"judge": {"verdicts": {"writing": "builtin"}}}]
)
def test_only_the_judge_of_the_run_has_judges_of_groups(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="Extra inputs are not permitted"):
        JudgeOptions.model_validate(options)


def test_settings_of_a_judge_of_a_run_may_be_a_panel_member_or_the_judge_of_a_group() -> None:
    judge = JudgeSettings(backend="scripted", script="a.json")
    dumped = judge.model_dump()
    for given in (judge, dumped):
        options = JudgeOptions.model_validate({"judge": {"verdicts": given}, "panel": [given]})
        assert [each.script for each in options.judges] == [None, "a.json", "a.json"]
    with pytest.raises(ValueError, match="name judges of groups in"):
        JudgeOptions.model_validate({"panel": [JudgeSettings(verdicts="builtin")]})  # type: ignore[arg-type]
