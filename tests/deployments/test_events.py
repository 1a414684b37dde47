"""The event "an index was rebuilt" where it is sent."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, Self

import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings

from deployments import events
from deployments.local_server import ServerAddress
from metric_core.errors import AssayError, ConfigError


class Server:
    """An HTTP server that records what is posted."""

    def __init__(self) -> None:
        self.posted: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def read_deployments(self, **_: object) -> list[Any]:
        return [SimpleNamespace(name="index-rebuilt", parameters={"config": {"deploy": {"index": "handbook"}}})]

    def request(self, method: str, path: str, json: list[dict[str, Any]]) -> None:
        assert (method, path) == ("POST", "/events")
        self.posted += json


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    found = Server()
    monkeypatch.setattr(events, "get_client", lambda **_: found)
    return found


def test_a_time_without_a_zone_is_local_time(server: Server) -> None:
    local = datetime(2026, 11, 21, 6)  # noqa: DTZ001 that is what is tested
    with temporary_settings({PREFECT_API_URL: "http://127.0.0.1:9/api"}):
        for when in (local, local.astimezone(UTC)):
            events.emit_index_rebuilt("handbook", "7", "rows.jsonl", announced=when)
    naive, aware = (datetime.fromisoformat(event["occurred"]) for event in server.posted)
    assert naive == aware == local.astimezone(UTC)


def test_an_index_that_no_deployment_evaluates_is_not_announced(server: Server) -> None:
    with (
        temporary_settings({PREFECT_API_URL: "http://127.0.0.1:9/api"}),
        pytest.raises(ConfigError, match=r"evaluates the index handbok.*listen to handbook \(index-rebuilt\)"),
    ):
        events.emit_index_rebuilt("handbok", "7", "rows.jsonl")
    assert server.posted == []


def test_the_server_of_this_machine_is_used_if_none_is_configured(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[ServerAddress] = []

    @contextmanager
    def use_server(address: ServerAddress) -> Iterator[None]:
        used.append(address)
        with temporary_settings({PREFECT_API_URL: address.url}):
            yield

    monkeypatch.setattr(events, "use_server", use_server)
    with temporary_settings(restore_defaults={PREFECT_API_URL}):
        monkeypatch.setattr(events, "find_address", lambda _home: None)
        with pytest.raises(ConfigError, match="no Prefect server is running"):
            events.emit_index_rebuilt("handbook", "7", "rows.jsonl")
        monkeypatch.setattr(events, "find_address", lambda _home: ServerAddress("http://127.0.0.1:9/api"))
        events.emit_index_rebuilt("handbook", "7", "rows.jsonl")
    assert [each.url for each in used] == ["http://127.0.0.1:9/api"]
    assert [event["payload"]["version"] for event in server.posted] == ["7"]


def test_a_server_that_does_not_answer_is_named_without_its_password() -> None:
    url = "http://me:geheim@127.0.0.1:9/api"
    with (
        temporary_settings({PREFECT_API_URL: url}),
        pytest.raises(AssayError, match=r"at http://127\.0\.0\.1:9/api did not accept the event") as refused,
    ):
        events.emit_index_rebuilt("handbook", "7", "rows.jsonl")
    assert "geheim" not in str(refused.value)


def test_a_signed_url_is_not_announced(server: Server) -> None:
    with pytest.raises(ConfigError, match="everyone could read it") as refused:
        events.emit_index_rebuilt("handbook", "7", "https://bucket/rows.jsonl?X-Amz-Signature=geheim")
    assert "geheim" not in str(refused.value)
    assert server.posted == []
