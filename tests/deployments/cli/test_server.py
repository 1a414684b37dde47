"""`assay server stop` warns if a run uses the server."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deployments.cli import server
from deployments.local_server import ServerStatus


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
