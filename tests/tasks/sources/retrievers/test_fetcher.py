"""Fetching from an index: retries, concurrency, and reasons of unusable replies."""

from collections.abc import Mapping
from threading import Barrier
from typing import Any

import pytest

from metric_core.errors import ConfigError, PluginError
from tasks.options.retriever_options import RetrieverOptions
from tasks.sources.retrievers import http_retriever
from tasks.sources.retrievers.fetcher import FetchedContexts, Fetcher
from tasks.sources.retrievers.protocol import Passage
from tests.json_endpoint import JsonEndpoint, Reply
from tests.tasks.sources.retrievers import own_index
from tests.waiting import DEAD_SECONDS

OWN = "tests.tasks.sources.retrievers.own_index:Halls"


def fetch(reply: Reply, *queries: str, **options: Any) -> tuple[list[FetchedContexts], JsonEndpoint]:
    with JsonEndpoint(reply) as server:
        fetcher = Fetcher(RetrieverOptions(index=server.url, **options), sleep=lambda _: None)
        return list(fetcher.fetch(queries)), server


def test_passages_follow_the_order_of_the_queries() -> None:
    def reply(sent: Mapping[str, Any], before: int) -> tuple[int, Any]:
        del before
        return 200, {"passages": [{"text": f"about {sent['query']}", "id": 7}, "more", "too many"]}

    found, server = fetch(reply, "a", "b", "c", top_k=2)
    assert [each.passages[0].text for each in found] == ["about a", "about b", "about c"]
    assert found[0].passages == (Passage("about a", "7"), Passage("more"))
    assert server.received[0].keys() == {"query", "top_k"}


def test_api_key_is_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INDEX_KEY", "k-123")
    _, server = fetch(lambda *_: (200, []), "a", api_key="env:INDEX_KEY")
    assert server.keys == {"Bearer k-123"}


def test_busy_index_is_retried() -> None:
    found, server = fetch(lambda _, before: (503, {}) if before < 2 else (200, ["at last"]), "a")
    assert found == [FetchedContexts((Passage("at last"),))]
    assert len(server.received) == 3


@pytest.mark.parametrize(
    ("status", "reply", "problem"),
    [
        (503, {}, "replied with status 503"),
        (400, {}, "status 400"),
        (200, b"no JSON", "the reply is not JSON"),
        (200, {"hits": []}, "the reply has no 'passages', it has 'hits'"),
        (200, "text", "got str, wanted a list of passages"),
        (200, [{"body": "?"}], "passage 1 is dict, wanted a text or"),
    ],
)
def test_unusable_reply_has_a_reason(status: int, reply: Any, problem: str) -> None:
    (found,), _ = fetch(lambda *_: (status, reply), "a", max_retries=1)
    assert found.passages == ()
    assert problem in (found.problem or "")


def test_oversized_reply_has_a_reason_and_is_not_fetched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_retriever, "MAX_REPLY_BYTES", 4000)
    (found,), server = fetch(lambda *_: (200, ["x" * 5000]), "a")
    assert found.problem == "reply larger than 4,000 bytes"
    assert len(server.received) == 1


def test_local_index_is_not_asked_through_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")  # nobody listens there
    (found,), _ = fetch(lambda *_: (200, ["here"]), "a")
    assert found.passages == (Passage("here"),)


def test_wrong_address_ends_the_fetch() -> None:
    with pytest.raises(ConfigError, match="replied with status 404; check its URL and api_key"):
        fetch(lambda *_: (404, {}), "a")


def test_queries_are_sent_concurrently() -> None:
    together = Barrier(3)

    def reply(*_: Any) -> tuple[int, Any]:
        together.wait(timeout=DEAD_SECONDS)
        return 200, []

    assert len(fetch(reply, *"abc", concurrency=3)[0]) == 3


def test_custom_index_and_generator() -> None:
    options = RetrieverOptions(
        index=OWN, generator="tests.tasks.sources.retrievers.own_index:Speaker", options={"opens": "ten"}, top_k=1
    )
    good, bad = Fetcher(options).fetch(["What does hall 1 do?", "What does hall 13 do?"])
    assert good.passages == (Passage("Hall 1 repairs bikes. It opens at ten.", "h1"),)
    assert good.response == good.passages[0].text
    assert bad.problem == "ValueError: there is no hall 13"


def test_a_rebuilt_index_is_read_by_the_next_run_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for hour in ("nine", "ten"):
        monkeypatch.setattr(own_index.Halls, "indexed", hour)
        (result,) = Fetcher(RetrieverOptions(index=OWN)).fetch(["What does hall 1 do?"])
        found.append(result.passages[0].text)
    assert found == ["Hall 1 repairs bikes. It opens at nine.", "Hall 1 repairs bikes. It opens at ten."]


def test_object_without_a_generate_method_is_refused() -> None:
    with pytest.raises(PluginError, match="it has no method generate"):
        Fetcher(RetrieverOptions(index=OWN, generator=OWN))


@pytest.mark.parametrize("index", ["ftp://host/search", "http://user:secret@host/search", "http://host/?key=secret"])
def test_a_url_with_secrets_is_refused_without_being_repeated(index: str) -> None:
    with pytest.raises(ValueError, match=r"reached by http|must hold no user") as refused:
        RetrieverOptions(index=index)
    assert "secret" not in str(refused.value)


def test_connections_to_index_and_generator_are_closed() -> None:
    with JsonEndpoint(lambda *_: (200, [])) as server:
        options = RetrieverOptions(index=server.url, generator=server.url)
        with Fetcher(options) as fetcher:
            list(fetcher.fetch(["a"]))
        with pytest.raises(RuntimeError, match="client has been closed"):
            fetcher._retriever.retrieve("a")
        assert fetcher._generator is not None
        with pytest.raises(RuntimeError, match="client has been closed"):
            fetcher._generator.generate("a", [])
