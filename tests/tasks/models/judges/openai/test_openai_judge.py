"""Tests of the requests and answers of the server judge."""

from typing import Any

import pytest

from metric_core.prompts.judge_questions import (
    ChoiceQuestion,
    ask_claims,
    ask_questions,
    ask_usefulness_for_response,
    ask_verdict,
)
from metric_core.prompts.prompt_set import load_prompts
from metric_core.question_kinds import QuestionKind
from metric_core.records import AnswerStatus
from tasks.models.judges.openai import completion, reply_limits, reply_parsing
from tests.tasks.models.judges.openai.conftest import OpenJudge, Serve
from tests.tasks.models.judges.openai.fake_server import FULL, PLAIN, Fault, step

VERDICT = ask_verdict("It rains.", "Rain.")
CLAIMS = ask_claims("It rains. It is cold.", None)
ASPECT = ChoiceQuestion(QuestionKind.ASPECT, {"response": "r"}, ("yes", "no"), {"definition": "Is it kind?"}, votes=3)


def _user(body: dict[str, Any]) -> str:
    return str(body["messages"][-1]["content"])


def test_a_verdict_is_one_token_with_probabilities(serve: Serve, open_judge: OpenJudge) -> None:
    top = {"yes": 0.5, "y": 0.125, " Yes": 0.125, "no": 0.25}
    usage = {"prompt_tokens": 120, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 96}}
    server = serve(say=lambda _: {"content": "yes", "steps": [step("yes", top)], "usage": usage})
    (answer,) = open_judge(server).choose([VERDICT])
    assert answer.label == "yes"
    assert answer.probabilities == pytest.approx({"yes": 0.75, "no": 0.25})
    assert (answer.usage.prompt_tokens, answer.usage.cached_tokens, answer.usage.output_tokens) == (120, 96, 1)
    assert answer.usage.seconds > 0
    (body,) = server.asked
    assert body["max_tokens"] == 1
    assert body["temperature"] == 0.0
    assert body["structured_outputs"] == {"choice": ["yes", "no"]}


def test_questions_are_asked_with_the_prompts_of_the_language(serve: Serve, open_judge: OpenJudge) -> None:
    server, hindi = serve(say=lambda _: {"content": "yes"}), load_prompts("hi")
    (answer,) = open_judge(server, language="hi").choose([VERDICT])
    assert answer.label == "yes"
    (body,) = server.asked
    prompt = hindi.render(VERDICT)
    assert [message["content"] for message in body["messages"]] == [prompt.system, prompt.user]
    assert "\nक्या दावा समर्थित है? इनमें से एक उत्तर दें: yes, no\n" in _user(body)


def test_a_label_begun_in_one_token_is_that_label(serve: Serve, open_judge: OpenJudge) -> None:
    server = serve(say=lambda _: {"content": "y", "finish_reason": "length", "steps": [step("y", {"y": 1.0})]})
    assert open_judge(server).choose([VERDICT])[0].label == "yes"


@pytest.mark.parametrize(
    ("abilities", "content", "label"),
    [
        ({"response_format"} | PLAIN, '{"answer": "no"}', "no"),
        ({"response_format"} | PLAIN, '{"answer": "maybe"}', None),
        ({"response_format"} | PLAIN, '{"answer": "n', None),
        (PLAIN, " No.\n", "no"),
        (PLAIN, "No, it does not.", None),
        (PLAIN, "<think>Yes? No.</think>\nno", "no"),
        (PLAIN, "<think>Yes", None),
    ],
)
def test_choices_without_a_choice_constraint(
    serve: Serve, open_judge: OpenJudge, abilities: set[str], content: str, label: str | None
) -> None:
    (answer,) = open_judge(serve(abilities, say=lambda _: {"content": content})).choose([VERDICT])
    assert answer.label == label
    assert answer.probabilities is None
    if label is None:
        assert answer.status is AnswerStatus.FAILED
        assert answer.reason in (reply_parsing.NO_LABEL, completion.UNFINISHED_THOUGHT)
        assert answer.reply == content


def test_probabilities_of_labels_in_json(serve: Serve, open_judge: OpenJudge) -> None:
    tokens = ['{"', "answer", '":', ' "']
    steps = [step(token, {token: 1.0}) for token in tokens] + [step("yes", {"yes": 0.9, "no": 0.1})]
    say = {"content": '{"answer": "yes"}', "steps": [*steps, step('"}', {'"}': 1.0})]}
    server = serve({"response_format", "logprobs"} | PLAIN, say=lambda _: say)
    (answer,) = open_judge(server).choose([VERDICT])
    assert answer.probabilities == pytest.approx({"yes": 0.9, "no": 0.1})


def test_votes_in_one_request(serve: Serve, open_judge: OpenJudge) -> None:
    choices = [{"message": {"content": label}, "finish_reason": "stop"} for label in ("yes", "no", "perhaps")]
    server = serve(say=lambda _: {"choices": choices})
    (answer,) = open_judge(server).choose([ASPECT])
    assert answer.votes == ("yes", "no", None)
    assert answer.usage.requests == 1
    (body,) = server.asked
    assert (body["n"], body["temperature"], body["seed"]) == (3, 0.7, 0)


def test_votes_in_several_requests(serve: Serve, open_judge: OpenJudge) -> None:
    server = serve(FULL - {"n"}, say=lambda body: {"content": "no" if body["seed"] == 1 else "yes"})
    (answer,) = open_judge(server).choose([ASPECT])
    assert answer.votes == ("yes", "no", "yes")
    assert sorted(body["seed"] for body in server.asked) == [0, 1, 2]
    assert (answer.usage.requests, answer.usage.prompt_tokens) == (3, 300)


def test_generate(serve: Serve, open_judge: OpenJudge) -> None:
    server = serve()
    claims, questions = open_judge(server).generate([CLAIMS, ask_questions("It rains.", 3)])
    assert claims.value == {"claims": ["It rains.", "It rains."]}
    assert len(questions.value["questions"]) == 3
    by_temperature = {body["temperature"]: body for body in server.asked}
    assert by_temperature[0.0]["response_format"]["json_schema"]["schema"] == CLAIMS.schema
    assert by_temperature[0.7]["seed"] == 0


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"content": '{"claims": ["a"', "finish_reason": "length"}, reply_parsing.CUT_OFF),
        ({"content": '{"claims": ["a"]}', "finish_reason": "length"}, reply_parsing.CUT_OFF),
        ({"content": '{"claims": ["a"'}, reply_parsing.NO_JSON),
        ({"content": "I cannot."}, reply_parsing.NO_JSON),
        ({"content": '{"claims": [1]}'}, reply_parsing.OFF_SCHEMA),
        ({"content": '["a"]'}, reply_parsing.OFF_SCHEMA),
        ({"content": '<think>{"claims": []}'}, completion.UNFINISHED_THOUGHT),
        (
            {"content": None, "message": {"content": None, "reasoning": "So"}, "finish_reason": "length"},
            completion.UNFINISHED_THOUGHT,
        ),
        ({"content": ""}, completion.NO_REPLY),
        ({"content": None, "message": {"content": None, "refusal": "I will not."}}, completion.REFUSED),
        ({"choices": []}, completion.NO_REPLY),
        ({"choices": ["what"]}, completion.NO_REPLY),
    ],
)
def test_an_unusable_reply_fails_and_is_kept(
    serve: Serve, open_judge: OpenJudge, said: dict[str, Any], reason: str
) -> None:
    server = serve(say=lambda _: said)
    (answer,) = open_judge(server).generate([CLAIMS])
    assert answer.status is AnswerStatus.FAILED
    assert answer.value is None
    assert answer.reason == reason
    assert answer.usage.prompt_tokens == 100
    if isinstance(said.get("content"), str):
        assert answer.reply == said["content"]


@pytest.mark.parametrize("said", [{"content": '<think>Hm.</think>\n{"claims": []}'}, {"content": '{"claims": []}'}])
def test_a_thought_is_split_off(serve: Serve, open_judge: OpenJudge, said: dict[str, Any]) -> None:
    (answer,) = open_judge(serve(say=lambda _: said)).generate([CLAIMS])
    assert answer.value == {"claims": []}
    assert answer.reply == '{"claims": []}'


def test_a_thought_has_no_probabilities(serve: Serve, open_judge: OpenJudge) -> None:
    said = {"content": "yes", "message": {"reasoning": "No..."}, "steps": [step("No", {"No": 1.0})]}
    (answer,) = open_judge(serve(say=lambda _: said)).choose([VERDICT])
    assert (answer.label, answer.probabilities) == ("yes", None)


def test_answers_come_in_the_order_of_the_questions(serve: Serve, open_judge: OpenJudge) -> None:
    server = serve(say=lambda body: {"content": "yes" if "even" in _user(body) else "no"})
    questions = [ask_verdict("even" if i % 2 == 0 else "odd", f"context {(i * 7) % 10}") for i in range(60)]
    labels = [answer.label for answer in open_judge(server, concurrency=5).choose(questions)]
    assert labels == ["yes", "no"] * 30


def test_equal_beginnings_are_neighbours(serve: Serve, open_judge: OpenJudge) -> None:
    server = serve()
    contexts = ["first", "second", "third"]
    verdicts = [ask_verdict(f"claim {i}", context) for i in range(4) for context in contexts]
    useful = [ask_usefulness_for_response(context, "q", "r") for context in contexts]
    open_judge(server, concurrency=1).choose([*verdicts, *useful])
    asked = [next(context for context in contexts if f"\n{context}\n" in _user(body)) for body in server.asked]
    assert asked == ["first"] * 5 + ["second"] * 5 + ["third"] * 5


def test_a_thousand_questions_in_flight_are_bounded(serve: Serve, open_judge: OpenJudge) -> None:
    server = serve()
    server.delay = 0.002
    replies = open_judge(server, concurrency=16).choose([ask_verdict(f"claim {i}", "context") for i in range(1000)])
    assert {answer.label for answer in replies} == {"yes"}
    assert server.most_in_flight == 16


def test_a_prompt_longer_than_the_window_is_not_sent(serve: Serve, open_judge: OpenJudge) -> None:
    server = serve(window=8000)
    judge = open_judge(server)
    long, short = judge.choose([ask_verdict("c", "word " * 9000), VERDICT])
    assert long.status is AnswerStatus.FAILED
    counted = len(server.tokenized)
    assert counted == 2  # once by probing
    tokens = sum(len(message["content"].split()) for message in server.tokenized[-1]["messages"])
    assert long.reason == "prompt longer than the judge's window"
    assert long.reply == f"{tokens} of 8000 tokens"
    assert long.usage.requests == 0
    assert short.label == "yes"
    assert len(server.asked) == 1


def test_a_reply_gets_what_the_prompt_leaves_of_the_window(
    serve: Serve, open_judge: OpenJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reply_limits, "TOKENS_PER_BYTE", 64.0)
    server = serve(window=1024)
    (answer,) = open_judge(server).generate([CLAIMS])
    assert answer.status is AnswerStatus.ANSWERED
    tokens = sum(len(message["content"].split()) for message in server.tokenized[-1]["messages"])
    assert server.asked[0]["max_tokens"] == 1024 - tokens


def test_without_a_tokenizer_a_given_window_is_checked_by_estimate(serve: Serve, open_judge: OpenJudge) -> None:
    server = serve(FULL - {"tokenize"})
    (answer,) = open_judge(server, context_window=1000).choose([ask_verdict("c", "word " * 1200)])
    assert answer.reason == "prompt longer than the judge's window"
    assert server.asked == []


def test_the_server_says_that_a_prompt_is_too_long(serve: Serve, open_judge: OpenJudge) -> None:
    words = (
        "This model's maximum context length is 1000 tokens. However, you requested 1201 tokens "
        "(1200 in the messages, 1 in the completion). Please reduce the length of the messages or completion."
    )
    server = serve(FULL - {"tokenize"}, say=lambda _: Fault(400, {"error": {"message": words}}))
    (answer,) = open_judge(server).choose([ask_verdict("c", "word " * 1200)])
    assert answer.reason == "prompt longer than the judge's window"
    assert answer.reply == words


def test_another_refusal_is_a_failed_answer_with_the_servers_words(serve: Serve, open_judge: OpenJudge) -> None:
    words = {"message": "no\n request-12ab, thanks"}
    server = serve(say=lambda body: Fault(400, words) if "bad" in _user(body) else None)
    good, bad = open_judge(server).choose([VERDICT, ask_verdict("bad", "p")])
    assert good.label == "yes"
    assert bad.reason == "the judge server gave an error (400): no ... thanks"
    assert bad.reply == "no request-12ab, thanks"
    assert len(server.asked) == 2


def test_identity_and_fingerprint(serve: Serve, open_judge: OpenJudge) -> None:
    one, other = serve(), serve(window=4096)
    judge = open_judge(one, revision="abc")
    identity = judge.identity
    assert (identity.backend, identity.model, identity.revision) == ("server", "judge-model", "abc")
    assert identity.language_model
    assert identity.note == f"judge-model served by vLLM 0.33.0 at {one.url}"
    kind = QuestionKind.VERDICT
    same = open_judge(other, revision="abc", concurrency=3, timeout=9)
    assert judge.fingerprint(kind) == same.fingerprint(kind)
    assert judge.fingerprint(kind) != judge.fingerprint(QuestionKind.CLAIMS)
    for change in ({"revision": "abd"}, {"revision": "abc", "temperature": 0.5}):
        assert judge.fingerprint(kind) != open_judge(one, **change).fingerprint(kind)
    # The model counts, whether it was named or found.
    assert open_judge(one, model="judge-model", revision="abc").fingerprint(kind) == judge.fingerprint(kind)
    assert open_judge(serve(models=["another"]), revision="abc").fingerprint(kind) != judge.fingerprint(kind)


def test_every_kind_can_be_asked(serve: Serve, open_judge: OpenJudge) -> None:
    judge = open_judge(serve())
    assert all(judge.can_answer(kind) for kind in QuestionKind)
    assert judge.choose([]) == []
    assert judge.generate([]) == []
