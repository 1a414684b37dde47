"""The guard of all HTTP servers, with a small application behind it."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from deployments.web.http_guard import FORM_TYPES, HEADERS, App, Guard, Message, Receive, Send, basic_authorization

HOST = "127.0.0.1:4200"
CROSS_SITE = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "empty"}
LINK = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
FRAME = LINK | {"sec-fetch-dest": "iframe"}


class Recorder:
    """An application that reads the body and records what reached it."""

    def __init__(self, headers: Sequence[tuple[bytes, bytes]] = ()) -> None:
        self.reached: list[str] = []
        self.body = b""
        self.is_whole = False
        self._headers = headers

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        self.reached.append(scope["type"])
        if scope["type"] == "websocket":
            await send({"type": "websocket.accept"})
        if scope["type"] == "http":
            while (message := await receive())["type"] != "http.disconnect":
                self.body += message["body"]
                if not message["more_body"]:
                    self.is_whole = True
                    break
            if not self.is_whole:
                raise ConnectionError("the client went away")
            await send({"type": "http.response.start", "status": 200, "headers": self._headers})
            await send({"type": "http.response.body", "body": b"done"})


def guard(app: App, **options: Any) -> Guard:
    """Return the guard of a server at 127.0.0.1:4200."""
    given: dict[str, Any] = {"host": "127.0.0.1", "port": 4200} | options
    return Guard(app, **given)


def call(
    app: App,
    headers: Mapping[str, str] | Sequence[tuple[str, str]] = (),
    method: str = "GET",
    kind: str = "http",
    body: Sequence[bytes] = (b"",),
) -> list[Message]:
    """Open one connection to an application, and return the messages that it sends."""
    given = list(headers.items() if isinstance(headers, Mapping) else headers)
    if "host" not in dict(given):
        given.append(("host", HOST))
    raw = [(name.encode(), value.encode()) for name, value in given]
    scope = {"type": kind, "path": "/api/flow_runs/", "query_string": b"", "method": method, "headers": raw}
    chunks = [{"type": "http.request", "body": part, "more_body": True} for part in body]
    chunks[-1]["more_body"] = False
    sent: list[Message] = []

    async def receive() -> Message:
        return chunks.pop(0) if kind == "http" else {"type": "websocket.connect"}

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))  # type: ignore[arg-type]
    return sent


def status(*arguments: Any, **options: Any) -> int:
    """Return the status of the response to a request."""
    return int(call(*arguments, **options)[0]["status"])


@pytest.mark.parametrize("host", [HOST, "localhost:4200", "LOCALHOST:4200"])
def test_own_hosts_are_let_through(host: str) -> None:
    assert status(guard(Recorder()), {"host": host}) == 200


def test_another_host_is_refused() -> None:
    for kind in ["http", "websocket"]:
        for host in ["", "127.0.0.1", "127.0.0.1:4201", "evil.example:4200", "127.0.0.1.evil.example:4200"]:
            recorder = Recorder()
            answer = call(guard(recorder), {"host": host}, kind=kind)[0]
            assert answer.get("status", answer.get("code")) in (421, 1008), (host, kind)
            assert not recorder.reached, (host, kind)


def test_a_server_answers_to_the_names_it_was_bound_to() -> None:
    cases: list[tuple[str, str, int]] = [
        ("0.0.0.0", "192.168.1.7:4200", 200),
        ("0.0.0.0", "[fe80::1]:4200", 200),
        ("::", "localhost:4200", 200),
        ("0.0.0.0", "evil.example:4200", 421),
        ("0.0.0.0", "receiver:4200", 200),
        ("0.0.0.0", "traces.example:80", 200),
        ("0.0.0.0", "traces.example", 200),
        ("0.0.0.0", "traces.example:4200", 421),
        ("::1", "[::1]:4200", 200),
        ("::1", "127.0.0.1:4200", 421),
        ("localhost", "127.0.0.1:4200", 200),
        ("192.168.1.7", "192.168.1.7:4200", 200),
        ("192.168.1.7", "192.168.1.8:4200", 421),
    ]
    for bound, host, expected in cases:
        app = guard(Recorder(), host=bound, names=["receiver", "traces.example:80"])
        assert status(app, {"host": host}) == expected, (bound, host, expected)


def test_another_origin_is_refused() -> None:
    for kind in ["http", "websocket"]:
        for origin in [
            "http://evil.example",
            "null",
            "",
            "http://127.0.0.1:4201",
            "http://localhost:4200",
            f"http://{HOST}.",
        ]:
            recorder = Recorder()
            answer = call(guard(recorder), {"origin": origin}, "POST", kind)[0]
            assert answer.get("status", answer.get("code")) in (403, 1008), (origin, kind)
            assert not recorder.reached, (origin, kind)


@pytest.mark.parametrize("kind", ["http", "websocket"])
@pytest.mark.parametrize("headers", [{}, {"origin": f"http://{HOST}", "sec-fetch-site": "same-origin"}])
def test_the_own_origin_and_programs_are_let_through(headers: dict[str, str], kind: str) -> None:
    recorder = Recorder()
    call(guard(recorder), headers, kind=kind)
    assert recorder.reached == [kind]


@pytest.mark.parametrize("site", ["cross-site", "same-site", "anything"])
def test_requests_of_other_sites_are_refused_without_an_origin_too(site: str) -> None:
    assert status(guard(Recorder()), CROSS_SITE | {"sec-fetch-site": site}) == 403


def test_a_link_opens_pages_only_of_servers_that_allow_it() -> None:
    assert status(guard(Recorder()), LINK) == 403
    linkable = guard(Recorder(), linkable=True)
    assert status(linkable, LINK) == 200
    assert status(linkable, LINK, "POST") == 403
    assert status(linkable, FRAME) == 403
    assert status(linkable, CROSS_SITE) == 403


def test_a_body_declares_a_type_that_a_page_cannot_send() -> None:
    cases: list[dict[str, str]] = [{"content-length": "2"}, {"transfer-encoding": "chunked"}]
    others: list[str | None] = [None, *sorted(FORM_TYPES), "text/plain;charset=UTF-8", "application/x-other"]
    for length in cases:
        for method in ["POST", "PUT", "PATCH", "DELETE", "GET"]:
            for media_type in others:
                recorder = Recorder()
                headers = length | ({} if media_type is None else {"content-type": media_type})
                assert status(guard(recorder), headers, method, body=[b"{}"]) == 415, (media_type, method, length)
                assert not recorder.reached, (media_type, method, length)


def test_accepted_media_types_are_let_through() -> None:
    both = guard(Recorder(), media_types=["application/json", "application/x-protobuf"])
    for media_type in ("application/json; charset=utf-8", "Application/JSON", "application/x-protobuf"):
        assert status(both, {"content-type": media_type, "content-length": "2"}, "POST", body=[b"{}"]) == 200
    assert status(both, {"content-length": "0"}, "POST") == 200


@pytest.mark.parametrize("media_type", sorted(FORM_TYPES))
def test_no_server_can_accept_types_of_forms(media_type: str) -> None:
    with pytest.raises(ValueError, match="can be sent by any web page"):
        guard(Recorder(), media_types=[media_type])


def test_a_long_body_is_refused_by_its_declared_length() -> None:
    recorder = Recorder()
    headers = {"content-type": "application/json", "content-length": "11"}
    assert status(guard(recorder, max_bytes=10), headers, "POST", body=[b"x" * 11]) == 413
    assert not recorder.reached


def test_a_long_body_without_a_length_ends_for_the_application() -> None:
    recorder = Recorder()
    headers = {"content-type": "application/json", "transfer-encoding": "chunked"}
    sent = call(guard(recorder, max_bytes=10), headers, "POST", body=[b"x" * 6, b"x" * 6, b"x" * 6])
    assert [each.get("status") for each in sent] == [413, None]
    assert (recorder.body, recorder.is_whole) == (b"x" * 6, False)
    assert status(guard(Recorder(), max_bytes=10), headers, "POST", body=[b"x" * 5, b"x" * 5]) == 200


def test_responses_and_refusals_have_the_headers() -> None:
    for app in (guard(Recorder()), guard(Recorder(), port=1)):
        assert HEADERS.items() <= dict(call(app)[0]["headers"]).items()


def test_headers_of_the_application_are_kept() -> None:
    own = [(b"Content-Security-Policy", b"default-src 'self'")]
    answered = call(guard(Recorder(own)))[0]["headers"]
    assert [value for name, value in answered if name.lower() == b"content-security-policy"] == [b"default-src 'self'"]


@pytest.mark.parametrize("name", ["host", "origin", "content-type", "authorization"])
def test_a_header_that_decides_must_be_there_once(name: str) -> None:
    assert status(guard(Recorder()), [(name, HOST), (name, HOST)]) == 400


def test_credentials_are_required_of_http_if_there_are_any() -> None:
    recorder = Recorder()
    app = guard(recorder, credentials="assay:secret")
    wrong = (None, "Basic", "Bearer secret", basic_authorization("assay:other"), basic_authorization("assay:sécret"))
    for given in wrong:
        refused = call(app, {} if given is None else {"authorization": given})[0]
        assert refused["status"] == 401
        assert b"www-authenticate" in dict(refused["headers"])
    assert not recorder.reached
    assert status(app, {"authorization": basic_authorization("assay:secret")}) == 200
    assert call(app, kind="websocket") == [{"type": "websocket.accept"}]


def test_the_lifespan_reaches_the_application() -> None:
    recorder = Recorder()
    call(guard(recorder), kind="lifespan")
    assert recorder.reached == ["lifespan"]
