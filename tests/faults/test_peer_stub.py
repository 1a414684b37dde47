"""The same with the stub judge of the peer benchmark, which others wrote, where that is at hand."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from tasks.judges.openai.reply_parsing import NO_JSON
from tests.faults.conftest import ROOT, ROWS, Evaluate, Run, Server

STUB = ROOT.parent / "shared" / "peer" / "judge_stub.py"

pytestmark = [
    pytest.mark.prefect,
    pytest.mark.models,
    pytest.mark.skipif(not STUB.is_file(), reason="the stub judge of the peer benchmark is not at hand"),
]


@pytest.fixture(scope="module")
def stub(serve: Callable[..., Server]) -> Callable[..., Server]:
    """Starts a stub."""

    def start(*options: str) -> Server:
        server = serve(str(STUB), "--latency-ms", "2", "--max-seconds", "120")
        server.start(*options)
        return server

    return start


@pytest.fixture(scope="module")
def undisturbed(stub: Callable[..., Server], evaluate: Evaluate, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The run that nothing disturbs."""
    return evaluate(tmp_path_factory.mktemp("undisturbed"), stub())


def injected(server: Server, what: str) -> int:
    """How many faults of a kind the stub made, so it says."""
    with urlopen(f"{server.url.removesuffix('/v1')}/stats", timeout=10) as reply:
        stats: dict[str, Any] = json.load(reply)
    return int(stats[what])


def test_every_tenth_request_is_refused(
    stub: Callable[..., Server], evaluate: Evaluate, undisturbed: Run, tmp_path: Path
) -> None:
    server = stub("--fail-every", "10", "--fail-status", "429")
    run = evaluate(tmp_path, server)
    assert injected(server, "errors_injected") > ROWS
    assert run.cells == undisturbed.cells
    assert run.manifest["usage"]["failed"] == {}
    assert run.manifest["usage"]["requests"] > undisturbed.manifest["usage"]["requests"]


def test_every_tenth_reply_is_bad_json(
    stub: Callable[..., Server], evaluate: Evaluate, undisturbed: Run, tmp_path: Path
) -> None:
    server = stub("--bad-json-every", "10")
    run = evaluate(tmp_path, server)
    assert run.manifest["usage"]["failed"] == {NO_JSON: injected(server, "bad_json_injected")}
    failed = {key: cell for key, cell in run.cells.items() if cell[1] == "failed"}
    assert {reason for *_, reason in failed.values()} == {NO_JSON}
    assert {key: cell for key, cell in run.cells.items() if key not in failed} == {
        key: cell for key, cell in undisturbed.cells.items() if key not in failed
    }
