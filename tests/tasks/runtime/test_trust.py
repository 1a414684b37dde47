"""Judges (aiohttp), and indexes, alerts and heartbeats (httpx), take the same certificates and the same proxies."""

import json
import ssl
from collections.abc import Callable, Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from flows.alerting.recipients import _client
from flows.monitoring import heartbeat
from flows.monitoring.heartbeat import call_heartbeat
from tasks.models.clients.connection import Connection
from tasks.options.retriever_options import RetrieverOptions
from tasks.options.server_options import ServerOptions
from tasks.runtime.retry import Backoff
from tasks.sources.retrievers.http_retriever import HttpRetriever
from tests.smtp_receiver import write_certificate

Ask = Callable[[str], object]


class Answers(BaseHTTPRequestHandler):
    """Notes what is asked, as a server or as a proxy, and answers everything with a passage."""

    asked: list[str]

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length", 0)))
        self.asked.append(self.path)
        content = json.dumps({"passages": ["It rains."]}).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST

    def do_CONNECT(self) -> None:
        self.asked.append(self.path)
        self.send_error(502)

    def log_message(self, *_arguments: object) -> None:
        """Log nothing."""


@pytest.fixture
def start_server() -> Iterator[Callable[[Path | None], tuple[int, list[str]]]]:
    servers: list[HTTPServer] = []

    def serve(certificate: Path | None = None) -> tuple[int, list[str]]:
        server = HTTPServer(("127.0.0.1", 0), type("Handler", (Answers,), {"asked": []}))
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        servers.append(server)
        return server.server_port, server.RequestHandlerClass.asked  # type: ignore[attr-defined]

    yield serve
    for server in servers:
        server.shutdown()
        server.server_close()


def ask_judge(url: str) -> object:
    with closing(Connection(ServerOptions(urls=(f"{url}/v1",), unavailable_timeout=0.0))) as connection:
        return connection.get_all("models")


def ask_index(url: str) -> object:
    with closing(HttpRetriever(url, RetrieverOptions(index=url))) as retriever:
        return retriever.retrieve("Does it rain?")


def send_alert(url: str) -> object:
    with _client() as client:
        return client.post(url, json={}).raise_for_status()


def send_heartbeat(url: str) -> object:
    warning = call_heartbeat(url, "support", "1")
    if warning is not None:
        raise OSError(warning)
    return None


CLIENTS = pytest.mark.parametrize("ask", [ask_judge, ask_index, send_alert, send_heartbeat])


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setattr(heartbeat, "_PAUSE", Backoff(0.0, 0.0))


@CLIENTS
def test_only_a_trusted_server_is_asked(
    ask: Ask, start_server: Callable[..., tuple[int, list[str]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate = write_certificate(tmp_path / "server.pem")
    port, asked = start_server(certificate)
    with pytest.raises(Exception, match=r".+"):
        ask(f"https://localhost:{port}")
    assert asked == []
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    ask(f"https://localhost:{port}")
    assert len(asked) == 1


@CLIENTS
def test_a_proxy_is_asked_unless_the_host_is_exempt(
    ask: Ask, start_server: Callable[..., tuple[int, list[str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    port, asked = start_server()
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{port}")
    monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{port}")
    ask("http://judge.invalid")
    assert asked[0].startswith("http://judge.invalid")
    asked.clear()
    with pytest.raises(Exception, match=r".+"):
        ask("https://judge.invalid")
    assert set(asked) == {"judge.invalid:443"}
    asked.clear()
    monkeypatch.setenv("NO_PROXY", "judge.invalid")
    with pytest.raises(Exception, match=r".+"):
        ask("http://judge.invalid")
    assert asked == []
