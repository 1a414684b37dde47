"""A server with a bounded number of connections, against clients that are slow, silent or gone."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import httpx
import pytest

from deployments.web.http_guard import Message, Receive, Send
from deployments.web.http_server import HttpServer, open_server
from metric_core.errors import ConfigError
from tests.deployments.serving import serve_here
from tests.waiting import DEAD_SECONDS, wait_until

HEAD = b"GET / HTTP/1.1\r\nHost: x\r\n"
WHOLE = HEAD + b"\r\n"
LARGE = 20_000_000
"""Bytes, more than the buffers between a server and a client hold."""


class Answers:
    """An application that answers with its body, or a large one at `/large`, or not before it may at `/held`."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.may_answer = threading.Event()

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Handle a request."""
        self.begun.append(scope["path"])
        try:
            body, more = b"", True
            while more:
                message: Message = await receive()
                body += message.get("body", b"")
                more = message.get("more_body", False)
            while scope["path"] == "/held" and not self.may_answer.is_set():
                await asyncio.sleep(0.01)
            content = bytes(LARGE) if scope["path"] == "/large" else body or b"done"
            await send({"type": "http.response.start", "status": 200, "headers": []})
            for place in range(0, len(content), 1_000_000):
                part = content[place : place + 1_000_000]
                await send({"type": "http.response.body", "body": part, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        finally:
            self.ended.append(scope["path"])


@contextmanager
def serve(app: Any, **bounds: Any) -> Iterator[tuple[HttpServer, str]]:
    """Serve an application while the context is entered, and yield the server and its address."""
    with open_server("127.0.0.1", 0, lambda _port: app, **bounds) as server, serve_here(server) as url:
        yield server, url


def connect(server: HttpServer, sent: bytes = b"") -> socket.socket:
    """Return a connection on which something was sent."""
    client = socket.create_connection(("127.0.0.1", server.port), timeout=DEAD_SECONDS)
    client.sendall(sent)
    return client


def is_closed(client: socket.socket) -> bool:
    """Return whether the server has closed a connection, once it did or sent something."""
    try:
        return client.recv(1) == b""
    except ConnectionError:
        return True


def open_connections(server: HttpServer) -> int:
    """Return the number of connections that the server holds."""
    return len(server._server.server_state.connections)


def test_silent_clients_keep_out_nobody() -> None:
    with serve(Answers(), connections=20) as (server, url), ExitStack() as clients:
        threads = set(threading.enumerate())
        for sent in [b"", HEAD, HEAD + b"Content-Length: 9\r\n\r\nhalf"] * 100:
            clients.enter_context(connect(server, sent))
        for _ in range(3):
            assert httpx.get(url).text == "done"
        assert open_connections(server) <= 21  # one more than the bound until the loop has closed it
        assert set(threading.enumerate()) <= threads


@pytest.mark.parametrize("begun", [b"", HEAD, HEAD + b"Content-Length: 999999\r\n\r\n"])
def test_a_client_that_sends_a_byte_now_and_then_is_cut_off(begun: bytes) -> None:
    with serve(Answers(), seconds=0.5) as (server, url), connect(server, begun) as client:
        client.settimeout(0.05)

        def is_cut_off() -> bool:
            try:
                client.sendall(b"x")
                return client.recv(1) == b""
            except TimeoutError:
                return False
            except ConnectionError:
                return True

        wait_until(is_cut_off)
        assert httpx.get(url).text == "done"
        wait_until(lambda: open_connections(server) == 0)


def test_a_connection_that_is_kept_alive_starts_anew_with_each_request() -> None:
    with serve(Answers(), connections=2) as (server, _), connect(server) as client:
        for sent in (WHOLE, HEAD + b"Content-Length: 2\r\n\r\nhi", WHOLE + WHOLE):
            client.sendall(sent)
            received = b""
            while received.count(b"0\r\n\r\n") < sent.count(b"GET"):
                received += client.recv(65_536)
            assert received.count(b"200 OK") == sent.count(b"GET")
        client.sendall(HEAD)
        with connect(server), connect(server):  # the oldest of three that wait has to go
            assert is_closed(client)


@pytest.mark.parametrize("requests", [1, 3])
def test_a_client_that_does_not_read_is_cut_off(requests: int) -> None:
    app = Answers()
    large = WHOLE.replace(b"GET /", b"GET /large")
    with serve(app, seconds=0.5) as (server, url), connect(server, large * requests):
        wait_until(lambda: app.begun[:1] == ["/large"])
        wait_until(lambda: open_connections(server) == 0)
        wait_until(lambda: app.ended == app.begun)
        assert httpx.get(url).text == "done"


def test_a_client_that_reads_slowly_gets_all() -> None:
    with serve(Answers(), seconds=60) as (_, url), httpx.stream("GET", f"{url}/large") as response:
        assert sum(map(len, response.iter_raw(10_000))) == LARGE


def test_requests_that_are_being_answered_are_not_cut_off() -> None:
    app = Answers()
    with serve(app, connections=2, seconds=0.2) as (server, url), ExitStack() as clients:
        held = [clients.enter_context(connect(server, WHOLE.replace(b"GET /", b"GET /held"))) for _ in range(2)]
        wait_until(lambda: app.begun == ["/held"] * 2)
        with connect(server, WHOLE) as another:
            assert is_closed(another)
        app.may_answer.set()
        for client in held:
            assert client.recv(15) == b"HTTP/1.1 200 OK"
        wait_until(lambda: open_connections(server) == 0)
        assert httpx.get(url).text == "done"


def test_a_websocket_takes_no_place_and_stays_open() -> None:
    upgrade = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    key = b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"

    async def echo(scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            for moment in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{moment}.complete"})
            return
        if scope["type"] == "http":
            await Answers()(scope, receive, send)
            return
        await receive()
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.send", "text": (await receive())["text"]})

    bounds = {"connections": 1, "seconds": 0.3, "whole": True}
    with serve(echo, **bounds) as (server, url), connect(server, HEAD + upgrade + key) as client:
        received = b""
        while b"\r\n\r\n" not in received:
            received += client.recv(65_536)
        assert b"101 Switching" in received
        with connect(server) as silent:
            assert is_closed(silent)  # after the time in which a request must arrive
        assert httpx.get(url).text == "done"
        client.sendall(b"\x81\x82\0\0\0\0hi")
        assert client.recv(4) == b"\x81\x02hi"


def test_clients_that_hang_up_leave_no_message(capfd: pytest.CaptureFixture[str]) -> None:
    app = Answers()
    with serve(app) as (server, url):
        for sent in [b"", HEAD, WHOLE, b"no http\r\n\r\n", WHOLE.replace(b"GET /", b"GET /large")] * 20:
            with connect(server, sent) as client:
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")  # resets at close
        wait_until(lambda: httpx.get(url).text == "done" and open_connections(server) <= 1)
    assert capfd.readouterr() == ("", "")


def test_the_end_waits_for_nobody_who_is_silent() -> None:
    with serve(Answers()) as (server, _), ExitStack() as clients:
        for sent in (b"", HEAD):
            clients.enter_context(connect(server, sent))
        wait_until(lambda: open_connections(server) == 2)
        server.stop()
        wait_until(lambda: open_connections(server) == 0)


@pytest.mark.parametrize("host", ["::1", "localhost"])
def test_other_names_of_this_machine_can_be_listened_at(host: str) -> None:
    try:
        with open_server(host, 0, lambda _port: Answers()) as server:
            assert server.port > 0
    except ConfigError as error:
        pytest.skip(f"this machine has no {host}: {error}")


def test_an_address_of_another_machine_is_an_error() -> None:
    with (
        pytest.raises(ConfigError, match=r"the port 4318 of 192\.0\.2\.1 cannot be used: .*--port"),
        open_server("192.0.2.1", 4318, lambda _port: Answers()),
    ):
        pass
