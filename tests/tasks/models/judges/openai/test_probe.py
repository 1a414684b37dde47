"""Tests of probing servers with different abilities, and of servers that cannot be used."""

import pytest

from metric_core.errors import JudgeError
from metric_core.prompts.judge_questions import ask_verdict
from tasks.models.judges.openai.openai_judge import OpenAIJudge
from tasks.models.judges.openai.server_features import ChoiceConstraint, JsonConstraint, ServerFeatures
from tasks.options.judge_server_options import ServerJudgeOptions
from tests.tasks.models.judges.openai.conftest import OpenJudge, Serve
from tests.tasks.models.judges.openai.fake_server import FULL, PLAIN


@pytest.mark.parametrize("refuses", [True, False])
@pytest.mark.parametrize(
    ("abilities", "expected"),
    [
        (
            FULL,
            ServerFeatures(
                "judge-model",
                "vLLM 0.33.0",
                thinking_switch=True,
                choice=ChoiceConstraint.STRUCTURED_OUTPUTS,
                json=JsonConstraint.RESPONSE_FORMAT,
                list_limits=True,
                top_logprobs=20,
                several=True,
                seed=True,
                tokenizer=True,
                prompt_lists=True,
            ),
        ),
        (
            {"guided_choice", "guided_json", "logprobs", "system", "max_tokens"},
            ServerFeatures(
                "judge-model",
                "vLLM 0.33.0",
                choice=ChoiceConstraint.GUIDED_CHOICE,
                json=JsonConstraint.GUIDED_JSON,
                list_limits=True,
                top_logprobs=20,
            ),
        ),
        (
            {"response_format", "logprobs", "system", "max_tokens"},
            ServerFeatures(
                "judge-model",
                "vLLM 0.33.0",
                choice=ChoiceConstraint.JSON_SCHEMA,
                json=JsonConstraint.RESPONSE_FORMAT,
                list_limits=True,
                top_logprobs=20,
            ),
        ),
        (
            {"structured_outputs", "system", "max_tokens"},
            ServerFeatures(
                "judge-model",
                "vLLM 0.33.0",
                choice=ChoiceConstraint.STRUCTURED_OUTPUTS,
                json=JsonConstraint.STRUCTURED_OUTPUTS,
                list_limits=True,
            ),
        ),
        (
            {"grammar", "json_object", "logprobs", "system", "max_tokens"},
            ServerFeatures(
                "judge-model",
                "vLLM 0.33.0",
                choice=ChoiceConstraint.GRAMMAR,
                json=JsonConstraint.JSON_OBJECT,
                list_limits=True,
                top_logprobs=20,
            ),
        ),
        (
            {"json_object", "system", "max_tokens"},
            ServerFeatures(
                "judge-model",
                "vLLM 0.33.0",
                choice=ChoiceConstraint.JSON_OBJECT,
                json=JsonConstraint.JSON_OBJECT,
                list_limits=True,
            ),
        ),
        (PLAIN, ServerFeatures("judge-model", "vLLM 0.33.0")),
    ],
    ids=["full", "guided", "only a JSON schema", "no log-probabilities", "grammar", "only a JSON object", "nothing"],
)
def test_features(
    serve: Serve, open_judge: OpenJudge, abilities: set[str], refuses: bool, expected: ServerFeatures
) -> None:
    found = open_judge(serve(abilities, refuses)).features
    if not refuses:  # a server that ignores fields seems to take those that change nothing to be seen
        assert (found.thinking_switch, found.seed) == (True, True)
    assert _without(found) == _without(expected) if not refuses else found == expected


def _without(found: ServerFeatures) -> dict[str, object]:
    return {
        name: getattr(found, name)
        for name in ("choice", "json", "list_limits", "top_logprobs", "several", "tokenizer", "prompt_lists")
    }


def test_a_model_without_a_system_message_gets_it_before_the_question(serve: Serve, open_judge: OpenJudge) -> None:
    server = serve(FULL - {"system"})
    judge = open_judge(server)
    judge.choose([ask_verdict("It rains.", "Rain.")])
    (message,) = server.asked[0]["messages"]
    assert message["role"] == "user"
    assert message["content"].startswith(judge._prompts.system)


def test_max_completion_tokens_is_used_where_max_tokens_is_unknown(serve: Serve, open_judge: OpenJudge) -> None:
    server = serve(FULL - {"max_tokens"} | {"max_completion_tokens"}, refuses=True)
    open_judge(server).choose([ask_verdict("It rains.", "Rain.")])
    assert server.asked[0]["max_completion_tokens"] == 1
    assert "max_tokens" not in server.asked[0]


def test_thinking_is_switched_off_unless_wanted(serve: Serve, open_judge: OpenJudge) -> None:
    server = serve()
    for thinking in (False, True):
        open_judge(server, thinking=thinking).choose([ask_verdict("It rains.", "Rain.")])
    assert [body["chat_template_kwargs"] for body in server.asked] == [
        {"enable_thinking": False},
        {"enable_thinking": True},
    ]
    assert [body["max_tokens"] for body in server.asked] == [1, 2048]


def test_the_window_is_the_smallest_of_the_replicas(serve: Serve, open_judge: OpenJudge) -> None:
    assert open_judge(serve(window=4096), serve(window=2048)).features.window == 2048


def test_one_of_several_models_must_be_named(serve: Serve, open_judge: OpenJudge) -> None:
    server = serve(models=["small", "large"])
    with pytest.raises(JudgeError, match="serves 2 models; name one of them: small, large"):
        open_judge(server)
    assert open_judge(server, model="large").identity.model == "large"


def test_a_model_that_one_replica_lacks(serve: Serve, open_judge: OpenJudge) -> None:
    with pytest.raises(JudgeError, match="does not serve the model 'judge-model', but: other"):
        open_judge(serve(), serve(models=["other"]))


def test_no_server(serve: Serve, open_judge: OpenJudge) -> None:
    server = serve()
    server.stop()
    with pytest.raises(JudgeError, match=r"127\.0\.0\.1:\d+/v1 cannot be reached.*Start the server"):
        open_judge(server, unavailable_timeout=0)


def test_an_address_without_v1(serve: Serve) -> None:
    url = serve().url.replace("/v1", "/elsewhere")
    with pytest.raises(JudgeError, match=r"gives no list of models \(404\)"):
        OpenAIJudge(ServerJudgeOptions(urls=(url,)))


def test_a_model_that_does_not_chat(serve: Serve, open_judge: OpenJudge) -> None:
    with pytest.raises(JudgeError, match="does not answer a simple chat request to the model 'judge-model': 400"):
        open_judge(serve((), refuses=True))


def test_a_server_that_fails_on_a_field_still_judges(serve: Serve, open_judge: OpenJudge) -> None:
    server = serve()
    server.stumbles_over = "structured_outputs"
    assert open_judge(server).features.choice is ChoiceConstraint.JSON_SCHEMA


def test_every_request_has_the_further_fields_of_the_user(serve: Serve, open_judge: OpenJudge) -> None:
    fields = {"top_k": 20, "chat_template_kwargs": {"style": "terse"}}
    server = serve()
    open_judge(server, extra_body=fields).choose([ask_verdict("It rains.", "Rain.")])
    assert [(body["top_k"], body["chat_template_kwargs"]) for body in server.asked] == [
        (20, {"style": "terse", "enable_thinking": False})
    ]
    chats = [body for body in server.bodies if "messages" in body]
    assert all(body["top_k"] == 20 and body["chat_template_kwargs"]["style"] == "terse" for body in chats)
