"""Tests of the judge server options: URLs, and the options that determine answers."""

import pytest
from pydantic import ValidationError

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
