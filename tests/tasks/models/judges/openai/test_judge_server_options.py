"""Tests of the judge server options: URLs, and the options that determine answers."""

import pytest
from pydantic import ValidationError

from tasks.options.judge_options import JudgeSettings
from tasks.options.judge_server_options import ServerJudgeOptions
from tasks.options.server_options import normalize_url


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("http://localhost:8000", "http://localhost:8000/v1"),
        (" https://judge.example/v1/ ", "https://judge.example/v1"),
        ("https://host/openai/v1", "https://host/openai/v1"),
    ],
)
def test_urls(given: str, used: str) -> None:
    assert normalize_url(given) == used


@pytest.mark.parametrize(
    "url", ["localhost:8000", "ftp://host", "http://", "http://me:pw@host", "http://host/v1?api_key=pw", "http://h/#pw"]
)
def test_rejected_urls(url: str) -> None:
    with pytest.raises(ValidationError) as caught:
        ServerJudgeOptions(urls=(url,))
    assert "pw" not in str(caught.value)


def test_at_least_one_url() -> None:
    with pytest.raises(ValidationError):
        ServerJudgeOptions(urls=())


def test_connection_options_do_not_determine_answers() -> None:
    one = ServerJudgeOptions(urls=("http://a",), concurrency=1, timeout=1, max_retries=0, unavailable_timeout=0)
    other = ServerJudgeOptions(urls=("http://b", "http://c"), api_key_env="KEY")
    assert one.determining() == other.determining()
    assert one.determining() != ServerJudgeOptions(urls=("http://a",), seed=1).determining()


def test_requests_without_extra_fields_have_the_keys_of_earlier_versions() -> None:
    options = ServerJudgeOptions(urls=("http://a",))
    assert "extra_body" not in options.determining()
    assert options.determining() | {"extra_body": {"top_k": 5}} == (
        ServerJudgeOptions(urls=("http://a",), extra_body={"top_k": 5}).determining()
    )


@pytest.mark.parametrize(
    ("fields", "advice"),
    [
        ({"temperature": 0.1}, "itself: set temperature "),
        ({"n": 2}, "no option changes it"),
        ({"chat_template_kwargs": {"enable_thinking": True}}, "the option thinking"),
        ({"chat_template_kwargs": "no"}, "a table of arguments, got str"),
        ({"provider": {"api_key": "sk-secret"}}, "name the key in api_key"),
        ({"hooks": [{"token": "sk-secret"}]}, "token looks like a secret"),
    ],
)
def test_extra_fields_that_the_judge_sets_and_secrets_are_refused(fields: dict[str, object], advice: str) -> None:
    with pytest.raises(ValidationError, match=advice) as caught:
        ServerJudgeOptions(urls=("http://a",), extra_body=fields)
    assert "sk-secret" not in str(caught.value)


def test_a_profile_says_what_requests_contain() -> None:
    with pytest.raises(ValidationError, match="a profile of your own"):
        JudgeSettings.model_validate(
            {"backend": "server", "profile": "factcg", "server": {"urls": ["http://a"], "extra_body": {"top_k": 5}}}
        )
