"""Tests of proxies: which are used, and that loopback servers are never asked through one."""

import os
import urllib.request
from collections.abc import Callable

import httpx
import pytest

from metric_core.errors import ConfigError
from tasks.runtime.proxies import exempt_loopback, proxy_for


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy"):
        monkeypatch.setenv(name, "")  # so that what a test sets is removed after it
        monkeypatch.delenv(name)
        monkeypatch.setenv(name.upper(), "")
        monkeypatch.delenv(name.upper())


def test_a_proxy_is_used_where_the_environment_names_one(monkeypatch: pytest.MonkeyPatch) -> None:
    assert proxy_for("http://judge.example/v1") is None
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.example:3128")
    monkeypatch.setenv("NO_PROXY", "near.example")
    assert proxy_for("http://judge.example/v1") == "http://proxy.example:3128"
    assert proxy_for("https://judge.example/v1") is None
    assert proxy_for("http://near.example/v1") is None
    monkeypatch.setenv("ALL_PROXY", "socks5://proxy.example:1080")
    assert proxy_for("https://judge.example/v1") == "socks5://proxy.example:1080"
    monkeypatch.setenv("HTTP_PROXY", "proxy.example:3128")
    assert proxy_for("http://judge.example/v1") == "http://proxy.example:3128"


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.8.9.1", "[::1]", "judge.localhost", "0.0.0.0"])
@pytest.mark.parametrize("name", ["HTTP_PROXY", "ALL_PROXY"])
def test_a_loopback_server_needs_no_exception(monkeypatch: pytest.MonkeyPatch, name: str, host: str) -> None:
    monkeypatch.setenv(name, "http://proxy.example:3128")
    assert proxy_for(f"http://{host}:8000/v1") is None


@pytest.mark.parametrize("value", ["socks://127.0.0.1:1080", "socks4://proxy:1080", "http://", "ftp://user:pw@proxy"])
def test_an_unusable_proxy_is_an_error_without_its_password(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("ALL_PROXY", value)
    calls: tuple[Callable[[], object], ...] = (exempt_loopback, lambda: proxy_for("http://judge.example/v1"))
    for call in calls:
        with pytest.raises(ConfigError, match="ALL_PROXY holds ") as caught:
            call()
        assert "pw" not in str(caught.value)


@pytest.mark.parametrize("given", [None, "intern.example", "localhost,intern.example"])
def test_libraries_that_read_proxies_exempt_loopback(monkeypatch: pytest.MonkeyPatch, given: str | None) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.example:3128")
    if given is not None:
        monkeypatch.setenv("NO_PROXY", given)
    exempt_loopback()
    assert set((given or "localhost").split(",")) < set(os.environ["no_proxy"].split(","))
    assert os.environ["no_proxy"] == os.environ["NO_PROXY"]
    assert urllib.request.proxy_bypass("127.0.0.1")
    client = httpx.Client()
    for url in ("http://127.0.0.1:4200/api", "http://localhost:4200/api", "http://[::1]:4200/api"):
        assert client._transport_for_url(httpx.URL(url)) is client._transport
    assert client._transport_for_url(httpx.URL("http://judge.example")) is not client._transport


def test_an_environment_without_proxies_is_left_alone() -> None:
    before = dict(os.environ)
    exempt_loopback()
    assert dict(os.environ) == before


def test_a_socks_proxy_does_not_stop_the_clients_of_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5h://127.0.0.1:1080")
    exempt_loopback()
    with httpx.Client() as client:
        assert client._transport_for_url(httpx.URL("http://127.0.0.1:4200")) is client._transport
