"""The real local server asks every program for its password, and refuses web pages even if they had it."""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from websockets.exceptions import InvalidStatus, WebSocketException
from websockets.sync.client import connect
from websockets.typing import Origin, Subprotocol

from deployments.local_server import ServerAddress, server_status
from deployments.local_server.local_server import IDENTITY_PATH, LocalServer
from deployments.web.http_guard import HEADERS, basic_authorization
from tests.sharing import ensure_local_server
from tests.waiting import DEAD_SECONDS

pytestmark = pytest.mark.prefect

SOCKETS = (
    "/events/in",
    "/events/out",
    "/logs/out",
    "/task_runs/subscriptions/scheduled",
    "/work_pools/any/workers/connect",
)
PREFECT = (Subprotocol("prefect"),)


@pytest.fixture(scope="module")
def server(server_home: Path) -> ServerAddress:
    """Return the address of the server that tests share."""
    return ensure_local_server(server_home)


@pytest.fixture(scope="module")
def root(server: ServerAddress) -> str:
    """Return the URL of the server."""
    return server.url.removesuffix("/api")


@pytest.fixture(scope="module")
def client(server: ServerAddress) -> Iterator[httpx.Client]:
    """Yield a client with the password."""
    assert server.credentials is not None
    headers = {"Authorization": basic_authorization(server.credentials)}
    with httpx.Client(base_url=server.url.removesuffix("/api"), headers=headers, timeout=DEAD_SECONDS) as client:
        yield client


def test_every_request_without_the_password_is_refused(root: str, client: httpx.Client) -> None:
    paths: dict[str, dict[str, Any]] = client.get("/api/openapi.json").raise_for_status().json()["paths"]
    assert len(paths) > 100
    requests = [(method, f"{root}/api{path}") for path, methods in paths.items() for method in methods]
    plain = ["/", "/docs", "/api/docs", "/openapi.json", "/api/openapi.json", "/ui-settings", "/api/health"]
    requests += [("get", f"{root}{path}") for path in (*plain, IDENTITY_PATH)]
    with httpx.Client(timeout=DEAD_SECONDS) as stranger:
        answered = {url: stranger.request(method, re.sub(r"\{.*?\}", "x", url)).status_code for method, url in requests}
    assert {url: code for url, code in answered.items() if code != 401} == {}


@pytest.mark.parametrize("given", ["assay", "assay:", "assay:guess"])
def test_a_wrong_password_is_refused(root: str, given: str) -> None:
    refused = httpx.get(
        f"{root}/api/health", headers={"Authorization": basic_authorization(given)}, timeout=DEAD_SECONDS
    )
    assert refused.status_code == 401


def open_socket(
    server: ServerAddress,
    path: str,
    token: str | None,
    origin: str | None = None,
    protocols: Sequence[Subprotocol] = PREFECT,
) -> dict[str, Any]:
    """Open a WebSocket as Prefect's clients do, and return the server's reply to the first message."""
    address = f"ws://{urlsplit(server.url).netloc}/api{path}"
    with connect(address, subprotocols=protocols, origin=None if origin is None else Origin(origin)) as socket:
        socket.send(json.dumps({"type": "auth", "token": token}))
        return dict(json.loads(socket.recv(timeout=DEAD_SECONDS)))


@pytest.mark.parametrize("path", SOCKETS)
def test_a_socket_is_closed_without_the_password(server: ServerAddress, path: str) -> None:
    for token in (None, "", "assay:guess"):
        with pytest.raises(WebSocketException):
            open_socket(server, path, token)
    with pytest.raises(WebSocketException):
        open_socket(server, path, server.credentials, protocols=())


@pytest.mark.parametrize("path", SOCKETS)
def test_a_socket_opens_with_the_password_but_to_no_page(server: ServerAddress, path: str) -> None:
    assert open_socket(server, path, server.credentials)["type"] == "auth_success"
    for origin in ("http://evil.example", "null", "http://127.0.0.1:1"):
        with pytest.raises(InvalidStatus, match="403"):
            open_socket(server, path, server.credentials, origin)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Host": "evil.example"}, 421),
        ({}, 415),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/json"}, 201),
    ],
)
def test_what_a_page_can_send_changes_nothing_even_with_the_password(
    client: httpx.Client, headers: dict[str, str], expected: int
) -> None:
    variable = f"written_{expected}_{len(headers)}_{'_'.join(headers.values()).encode().hex()}"
    body = json.dumps({"name": variable, "value": "x"}).encode()
    answer = client.post("/api/variables/", content=body, headers=headers)
    assert answer.status_code == expected
    assert HEADERS.items() <= {name.lower(): value for name, value in answer.headers.raw}.items()
    stored = client.get(f"/api/variables/name/{variable}").status_code
    assert stored == (200 if expected == 201 else 404)


def test_the_password_is_nowhere_but_in_the_record(server: ServerAddress, server_home: Path) -> None:
    record = server_status(server_home).record
    assert record is not None
    assert server.credentials is not None
    folder = LocalServer.from_home(server_home)
    assert (folder.path.stat().st_mode & 0o777, folder.record_file.stat().st_mode & 0o777) == (0o700, 0o600)
    password = server.credentials.removeprefix("assay:").encode()
    assert len(password) > 40
    holding = [path.name for path in folder.path.rglob("*") if path.is_file() and password in path.read_bytes()]
    assert holding == ["server.json"]
    for name in ("cmdline", "environ"):
        process = Path(f"/proc/{record.pid}/{name}")
        assert not process.exists() or password not in process.read_bytes()
