"""The layers around Prefect's application, with a small application in its place."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest

from deployments.local_server.local_server import IDENTITY_PATH
from deployments.local_server.middleware import Activity, RetryBusy
from deployments.web.http_guard import App, Guard, Message, Receive, Send, basic_authorization


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Scripted:
    """An application that returns the next status of a list and records the bodies of requests."""

    def __init__(self, statuses: Sequence[int], error: Exception | None = None) -> None:
        self.statuses = list(statuses)
        self.bodies: list[bytes] = []
        self.error = error

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        scope["touched"] = True
        body = b""
        while True:
            message = await receive()
            body += message["body"]
            if not message.get("more_body"):
                break
        self.bodies.append(body)
        status = self.statuses.pop(0)
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b"%d" % status})
        if status == 503 and self.error is not None:
            raise self.error


def call(
    app: App,
    url: str = "/api/flow_runs/",
    kind: str = "http",
    body: Sequence[bytes] = (b"",),
    headers: Sequence[tuple[bytes, bytes]] = (),
) -> list[Message]:
    """Send one request to an application, and return the messages that it sends."""
    path, _, query = url.partition("?")
    chunks = [{"type": "http.request", "body": part, "more_body": True} for part in body]
    chunks[-1]["more_body"] = False
    sent: list[Message] = []

    async def receive() -> Message:
        return chunks.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    scope = {"type": kind, "path": path, "query_string": query.encode(), "headers": headers}
    asyncio.run(app(scope, receive, send))  # type: ignore[arg-type]
    return sent


def query_identity(activity: Activity) -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(call(activity, IDENTITY_PATH)[1]["body"])
    return answer


def test_identity_query_does_not_count_as_use() -> None:
    clock = Clock()
    activity = Activity(Scripted([]), {"token": "t"}, clock)
    clock.now = 7.0
    assert query_identity(activity) == {"token": "t", "open_connections": 0, "idle_seconds": 7.0}
    assert activity.idle_seconds == 7.0


def test_asking_before_using_is_use() -> None:
    clock = Clock()
    activity = Activity(Scripted([]), {}, clock)
    clock.now = 7.0
    call(activity, f"{IDENTITY_PATH}?use")
    assert activity.idle_seconds == 0.0


def test_once_closed_it_denies_itself() -> None:
    clock = Clock()
    activity = Activity(Scripted([]), {"token": "t"}, clock)
    clock.now = 7.0
    assert not activity.close_if_idle(8.0)
    assert activity.close_if_idle(7.0)
    assert json.loads(call(activity, f"{IDENTITY_PATH}?use")[1]["body"]) == {}
    assert activity.close_if_idle(7.0)


def test_a_request_is_use() -> None:
    clock = Clock()
    activity = Activity(Scripted([200]), {}, clock)
    clock.now = 7.0
    call(activity)
    clock.now = 9.0
    assert activity.idle_seconds == 2.0


def test_a_health_check_is_no_use() -> None:
    clock = Clock()
    activity = Activity(Scripted([200]), {}, clock)
    clock.now = 7.0
    assert call(activity, "/api/health")[0]["status"] == 200
    assert activity.idle_seconds == 7.0


@pytest.mark.parametrize("kind", ["http", "websocket"])
def test_an_open_connection_is_use_however_long_it_lasts(kind: str) -> None:
    clock = Clock()
    seen: list[tuple[float, int]] = []

    async def long_lived(_scope: Any, _receive: Receive, _send: Send) -> None:
        clock.now += 3600.0
        seen.append((activity.idle_seconds, activity.open_connections))

    activity = Activity(long_lived, {}, clock)
    call(activity, "/api/events/in", kind)
    assert seen == [(0.0, 1)]
    assert activity.open_connections == 0


def test_a_connection_that_fails_is_counted_out() -> None:
    async def failing(_scope: Any, _receive: Receive, _send: Send) -> None:
        raise RuntimeError("broken")

    activity = Activity(failing, {})
    with pytest.raises(RuntimeError, match="broken"):
        call(activity)
    assert activity.open_connections == 0


def test_a_locked_database_is_tried_again_with_the_same_body() -> None:
    app = Scripted([503, 503, 201], error=OSError("database is locked"))
    sent = call(RetryBusy(app, pauses=(0.0, 0.0, 0.0)), body=(b"first ", b"second"))
    assert [message.get("status", message.get("body")) for message in sent] == [201, b"201"]
    assert app.bodies == [b"first second"] * 3


def test_the_last_answer_stands() -> None:
    sent = call(RetryBusy(Scripted([503, 503]), pauses=(0.0,)))
    assert [message.get("status", message.get("body")) for message in sent] == [503, b"503"]


@pytest.mark.parametrize("status", [200, 404, 409, 500])
def test_other_answers_are_passed_on_at_once(status: int) -> None:
    app = Scripted([status])
    assert call(RetryBusy(app))[0]["status"] == status
    assert len(app.bodies) == 1


def test_other_errors_are_passed_on() -> None:
    async def failing(_scope: Any, _receive: Receive, _send: Send) -> None:
        raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        call(RetryBusy(failing))


def test_after_the_body_the_application_hears_the_connection_itself() -> None:
    async def app(_scope: Any, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "next": await receive()})

    messages: list[Message] = [{"type": "http.request", "body": b"x"}, {"type": "http.disconnect"}]
    sent: list[Message] = []

    async def receive() -> Message:
        return messages.pop(0)

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(RetryBusy(app)({"type": "http", "path": "/"}, receive, send))
    assert sent[0]["next"] == {"type": "http.disconnect"}


def test_only_users_with_the_password_keep_the_server_alive() -> None:
    clock = Clock()
    activity = Activity(Scripted([200]), {"token": "token"}, clock)
    guard = Guard(activity, host="127.0.0.1", port=4200, credentials="assay:secret")
    clock.now = 100.0
    with_password = [(b"host", b"127.0.0.1:4200"), (b"authorization", basic_authorization("assay:secret").encode())]
    foreign = [*with_password, (b"origin", b"http://evil.example")]
    for headers, status, idle in (([], 421, 100.0), (with_password[:1], 401, 100.0), (foreign, 403, 100.0)):
        assert call(guard, f"{IDENTITY_PATH}?use", headers=headers)[0]["status"] == status
        assert activity.idle_seconds == idle
    assert call(guard, f"{IDENTITY_PATH}?use", headers=with_password)[0]["status"] == 200
    assert activity.idle_seconds == 0.0
