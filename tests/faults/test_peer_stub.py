"""Faults of the stub judge of the peer benchmark, a server that is independent of this project."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from tasks.models.judges.openai.reply_parsing import NO_JSON
from tests.faults.conftest import ROOT, ROWS, Evaluate, Run, Server

STUB = ROOT.parent / "shared" / "peer" / "judge_stub.py"

pytestmark = [
    pytest.mark.prefect,
    pytest.mark.models,
    pytest.mark.skipif(not STUB.is_file(), reason="the stub judge of the peer benchmark is not available"),
]


@pytest.fixture(scope="module")
def stub(serve: Callable[..., Server]) -> Callable[..., Server]:
    """Return a function that starts a stub."""

    def start(*options: str) -> Server:
        server = serve(str(STUB), "--latency-ms", "2", "--max-seconds", "1800")
        server.start(*options)
        return server

    return start


@pytest.fixture(scope="module")
def faultless_run(stub: Callable[..., Server], evaluate: Evaluate, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Return a run without faults."""
    return evaluate(tmp_path_factory.mktemp("faultless"), stub())


def count_faults(server: Server, what: str) -> int:
    """Return the number of faults of a kind that the stub reports."""
    with urlopen(f"{server.url.removesuffix('/v1')}/stats", timeout=10) as reply:
        stats: dict[str, Any] = json.load(reply)
    return int(stats[what])


def test_scores_are_unaffected_by_refused_requests(
    stub: Callable[..., Server], evaluate: Evaluate, faultless_run: Run, tmp_path: Path
) -> None:
    server = stub("--fail-every", "10", "--fail-status", "429")
    run = evaluate(tmp_path, server)
    assert count_faults(server, "errors_injected") > ROWS
    assert run.cells == faultless_run.cells
    assert run.manifest["usage"]["failed"] == {}
    assert run.manifest["usage"]["requests"] > faultless_run.manifest["usage"]["requests"]


def test_invalid_json_fails_only_its_cells(
    stub: Callable[..., Server], evaluate: Evaluate, faultless_run: Run, tmp_path: Path
) -> None:
    server = stub("--bad-json-every", "10")
    run = evaluate(tmp_path, server)
    assert run.manifest["usage"]["failed"] == {NO_JSON: count_faults(server, "bad_json_injected")}
    failed = {key: cell for key, cell in run.cells.items() if cell[1] == "failed"}
    assert {reason for *_, reason in failed.values()} == {NO_JSON}
    assert {key: cell for key, cell in run.cells.items() if key not in failed} == {
        key: cell for key, cell in faultless_run.cells.items() if key not in failed
    }
