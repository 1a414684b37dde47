"""`assay server` shows, hands out and stops the local server."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deployments.cli import server
from deployments.local_server import ServerStatus
from deployments.local_server.local_server import ServerRecord


@pytest.mark.parametrize(("open_connections", "said"), [(0, ""), (1, "the server was in use: ")])
def test_stopping_a_server_in_use_is_reported(
    assay: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, open_connections: int, said: str
) -> None:
    status = ServerStatus(Path("home"), open_connections=open_connections)
    monkeypatch.setattr(server, "server_status", lambda _home: status)
    monkeypatch.setattr(server, "stop_server", lambda _home: True)
    outcome = assay("server", "stop")
    assert (outcome.code, outcome.out) == (0, "stopped\n")
    assert outcome.err.startswith(said)
    assert bool(outcome.err) == bool(said)


@pytest.fixture
def running(monkeypatch: pytest.MonkeyPatch) -> ServerStatus:
    """Return the status of a local server that is taken for running."""
    record = ServerRecord(1, "here", "3.0.0", "http://127.0.0.1:4200/api", "token", "assay:secret")
    status = ServerStatus(Path("home"), record)
    monkeypatch.setattr(server, "server_status", lambda _home: status)
    return status


@pytest.mark.usefixtures("running")
def test_the_status_says_where_the_password_is_and_does_not_show_it(assay: Callable[..., Any]) -> None:
    outcome = assay("server", "status")
    assert outcome.out.startswith("http://127.0.0.1:4200/api (process 1, ")
    assert f"kept in {Path('home', 'server.json')}," in outcome.out
    assert 'eval "$(assay server env)"' in outcome.out
    assert "secret" not in outcome.out


@pytest.mark.usefixtures("running")
def test_the_variables_are_printed_for_a_shell(assay: Callable[..., Any]) -> None:
    printed = assay("server", "env").out
    wanted = "PREFECT_API_URL=http://127.0.0.1:4200/api\nPREFECT_API_AUTH_STRING=assay:secret\n"
    assert printed == "".join(f"export {line}\n" for line in wanted.splitlines())


def test_there_are_no_variables_without_a_server(assay: Callable[..., Any]) -> None:
    outcome = assay("server", "env")
    assert (outcome.code, outcome.out) == (2, "")
    assert "error: no local Prefect server is running" in outcome.err
