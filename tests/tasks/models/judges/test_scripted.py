"""Tests of the scripted judge."""

import json
from pathlib import Path

import pytest

from metric_core.errors import ConfigError
from metric_core.prompts.judge_questions import ChoiceQuestion, JudgeQuestion, ask_claims, ask_questions, ask_verdict
from metric_core.question_kinds import QuestionKind
from metric_core.records import AnswerStatus
from tasks.models.judges.protocol import ChoiceAnswer, GenerateAnswer
from tasks.models.judges.scripted import NOT_IN_THE_SCRIPT, ScriptedJudge


def test_the_key_with_the_most_texts_wins() -> None:
    judge = ScriptedJudge(
        {
            "verdict": "no",
            ("verdict", "Paris is in France."): "yes",
            ("verdict", "Paris is in France.", "Paris, Texas"): "no",
        }
    )
    questions = [ask_verdict("Paris is in France.", premise) for premise in ("a map", "Paris, Texas")]
    assert [answer.label for answer in judge.choose([*questions, ask_verdict("Else.", "a map")])] == ["yes", "no", "no"]


def test_an_unknown_question_fails() -> None:
    judge = ScriptedJudge({("verdict", "known"): "yes"})
    (choice,) = judge.choose([ask_verdict("unknown", "premise")])
    (reply,) = judge.generate([ask_questions("known", 3)])
    for answer in (choice, reply):
        assert answer.status is AnswerStatus.FAILED
        assert answer.reason == NOT_IN_THE_SCRIPT


def test_probabilities_decide_the_label() -> None:
    (answer,) = ScriptedJudge({"verdict": {"yes": 0.2, "no": 0.8}}).choose([ask_verdict("c", "p")])
    assert answer.label == "no"
    assert answer.probabilities == {"yes": 0.2, "no": 0.8}


@pytest.mark.parametrize(("scripted", "votes"), [("yes", ("yes",) * 3), (["yes", None, "no"], ("yes", None, "no"))])
def test_votes(scripted: object, votes: tuple[str | None, ...]) -> None:
    question = ChoiceQuestion(QuestionKind.ASPECT, {"response": "r"}, ("yes", "no"), votes=3)
    assert ScriptedJudge({"aspect": scripted}).choose([question])[0].votes == votes


def test_a_label_that_was_not_offered_is_a_failure() -> None:
    (answer,) = ScriptedJudge({"verdict": "perhaps"}).choose([ask_verdict("c", "p")])
    assert answer.status is AnswerStatus.FAILED
    assert "perhaps" in (answer.reason or "")


def test_whole_answers_pass_through() -> None:
    choice = ChoiceAnswer(AnswerStatus.FAILED, reason="no route to host")
    reply = GenerateAnswer(AnswerStatus.UNDEFINED, reason="not asked")
    judge = ScriptedJudge({"verdict": choice, "claims": reply})
    assert judge.choose([ask_verdict("c", "p")]) == [choice]
    assert judge.generate([ask_claims("t", None)]) == [reply]


def test_a_function_receives_the_question() -> None:
    def script(question: JudgeQuestion) -> str | None:
        return "yes" if question.texts["claim"] in question.texts["context"] else None

    judge = ScriptedJudge(script)
    inside, outside = judge.choose([ask_verdict("b", "abc"), ask_verdict("z", "abc")])
    assert inside.label == "yes"
    assert outside.reason == NOT_IN_THE_SCRIPT


def test_it_records_its_questions() -> None:
    judge = ScriptedJudge({"verdict": "yes"})
    questions = [ask_verdict("a", "p"), ask_verdict("b", "p")]
    judge.choose(questions)
    assert judge.asked == questions


def test_the_identity_follows_the_script() -> None:
    one, same, other = (ScriptedJudge({"verdict": label}).identity for label in ("yes", "yes", "no"))
    assert one == same
    assert one.revision != other.revision
    assert (one.backend, one.language_model) == ("scripted", True)


def test_the_fingerprint_follows_the_script_and_the_kind() -> None:
    one, same, other = (ScriptedJudge({"verdict": label}) for label in ("yes", "yes", "no"))
    prints = [judge.fingerprint(QuestionKind.VERDICT) for judge in (one, same, other)]
    assert prints[0] == prints[1] != prints[2]
    assert one.fingerprint(QuestionKind.CLAIMS) != prints[0]


def test_the_callback_gets_every_answer() -> None:
    judge = ScriptedJudge({"verdict": "yes", "claims": {"claims": []}})
    received: list[object] = []
    answers = judge.choose([ask_verdict("a", "p"), ask_verdict("b", "p")], lambda *call: received.append(call))
    replies = judge.generate([ask_claims("t", None)], lambda *call: received.append(call))
    assert received == [*enumerate(answers), *enumerate(replies)]


def test_a_key_without_a_kind_is_rejected() -> None:
    with pytest.raises(ConfigError, match=r"'verdikt'.*verdict"):
        ScriptedJudge({"verdikt": "yes"})


def test_from_file(tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    entries = [
        {"kind": "claims", "texts": ["Rome is old."], "answer": {"claims": ["Rome is old."]}},
        {"kind": "verdict", "answer": "yes"},
        {"kind": "verdict", "texts": ["Rome is new."], "failed": "the server was busy"},
    ]
    path.write_text(json.dumps(entries), encoding="utf-8")
    judge = ScriptedJudge.from_file(path)
    assert judge.identity.model == "script.json"
    assert judge.generate([ask_claims("Rome is old.", "How old?")])[0].value == {"claims": ["Rome is old."]}
    known, failed = judge.choose([ask_verdict("Rome is old.", "p"), ask_verdict("Rome is new.", "p")])
    assert known.label == "yes"
    assert (failed.status, failed.reason) == (AnswerStatus.FAILED, "the server was busy")


@pytest.mark.parametrize(
    "content",
    [
        "{",
        '{"kind": "verdict"}',
        '["verdict"]',
        '[{"kind": "verdict"}]',
        '[{"kind": "verdict", "texts": "c", "answer": "no"}]',
    ],
)
def test_a_file_that_is_not_a_script_is_rejected(tmp_path: Path, content: str) -> None:
    path = tmp_path / "script.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"script\.json"):
        ScriptedJudge.from_file(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="absent"):
        ScriptedJudge.from_file(tmp_path / "absent.json")
