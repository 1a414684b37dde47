"""Judge servers as processes, and evaluations that share no store."""

import faulthandler
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pyarrow.parquet as pq
import pytest

from deployments.local_server import ServerAddress
from flows.config.run_config import RunConfig
from flows.evaluate import run_evaluation
from tests.deployments.cli.conftest import assay as assay  # noqa: PLC0414 a fixture here too
from tests.prefect_stub import use_stub
from tests.sharing import ensure_local_server
from tests.tasks.models.judges.openai.fake_server import free_port
from tests.waiting import DEAD_SECONDS, wait_until

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "handbook.jsonl"
ROWS = 24
METRICS = (
    "faithfulness",
    "answer_relevancy",
    "context_precision",
    "context_recall",
    "context_relevancy",
    "factual_correctness",
    "noise_sensitivity",
    "nv_accuracy",
    "nv_response_groundedness",
    "aspect_critic(definition=Is the answer polite?)",
)
MOST_SECONDS = 2 * DEAD_SECONDS
"""Time limit per test: a run that hangs ends the process with a traceback of every thread."""

Cells = dict[tuple[str, str], tuple[Any, ...]]


def restart_timer() -> None:
    """Restart the timer that ends the process when it runs out."""
    faulthandler.dump_traceback_later(MOST_SECONDS, exit=True, file=sys.__stderr__ or sys.stderr)  # not a captured one


@pytest.fixture(autouse=True)
def _time_limit() -> Iterator[None]:
    restart_timer()
    yield
    faulthandler.cancel_dump_traceback_later()


def _answers(process: "subprocess.Popen[bytes]", url: str) -> bool:
    assert process.poll() is None, "the judge server ended at its start"
    with suppress(OSError):
        urlopen(url, timeout=10).close()
        return True
    return False


class Server:
    """A judge server in a separate process, which keeps its port when it is restarted.

    Args:
        command: Arguments of the Python interpreter that start the server, without the port.
    """

    def __init__(self, *command: str) -> None:
        self._command = command
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def start(self, *options: str) -> None:
        """Start the server, and wait until it accepts requests."""
        command = [sys.executable, *self._command, "--port", str(self.port), *options]
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
        wait_until(partial(_answers, self.process, f"{self.url}/models"), "the judge server")

    def wait(self) -> int:
        """Wait until the process ends, and return its exit code."""
        assert self.process is not None
        return self.process.wait()

    def stop(self) -> None:
        """Kill the process if it runs."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()


@pytest.fixture(scope="module")
def serve() -> Iterator[Callable[..., Server]]:
    """Yield a function that creates servers; stop them at the end."""
    made: list[Server] = []

    def make(*command: str) -> Server:
        made.append(Server(*command))
        return made[-1]

    yield make
    for server in made:
        server.stop()


@dataclass(frozen=True)
class Run:
    """A finished run.

    Args:
        folder: Path of the run folder.
    """

    folder: Path

    @property
    def manifest(self) -> dict[str, Any]:
        return dict(json.loads((self.folder / "run.json").read_text(encoding="utf-8")))

    @property
    def cells(self) -> Cells:
        """Value, status and reason of each cell, by row id and metric."""
        rows = pq.read_table(self.folder / "scores.parquet").to_pylist()
        return {(row["row_id"], row["metric"]): (row["value"], row["status"], row["reason"]) for row in rows}


Evaluate = Callable[..., Run]


@pytest.fixture(scope="module")
def prefect_address(server_home: Path) -> ServerAddress:
    """Return the address of the Prefect server that all runs share."""
    return ensure_local_server(server_home)


@pytest.fixture(scope="module")
def evaluate() -> Evaluate:
    """Return a function that evaluates the example; runs in different folders share no cache and no tables."""

    def run(folder: Path, server: Server, **options: Any) -> Run:
        with use_stub(), pytest.MonkeyPatch.context() as patch:
            patch.setenv("ASSAY_HOME", str(folder / "home"))
            run_evaluation(RunConfig.model_validate(configuration(folder, server, **options)))
        return Run(folder / "run")

    return run


def configuration(folder: Path, server: Server, **options: Any) -> dict[str, Any]:
    """Return the configuration of a run.

    Args:
        folder: Folder of the results, the cache and the tables.
        server: Judge server of the run.
        **options: Options of the judge server; `shard_rows` is an option of the run.
    """
    shard_rows = options.pop("shard_rows", ROWS // 2)
    return {
        "source": str(EXAMPLE),
        "limit": ROWS,
        "metrics": METRICS,
        "judge": {"backend": "server", "server": {"urls": [server.url], **options}},
        "out": str(folder / "run"),
        "shard_rows": shard_rows,
    }


def environment(folder: Path, prefect_address: ServerAddress) -> dict[str, str]:
    """Return the environment of a run in a separate process."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "ASSAY_"))}
    return kept | {"ASSAY_HOME": str(folder / "home"), "COLUMNS": "120"} | prefect_address.environment
