"""Killed runs resume: the stores are whole, scores are equal, and almost no question is asked twice.

Questions are counted in the log of the judge server. `ASSAY_TEST_KILLS` and `ASSAY_TEST_ROWS` lengthen the test.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from prefect.client.orchestration import get_client

from deployments.cli._support.interrupts import TERMINATED
from deployments.local_server import ServerAddress, use_server
from flows.config.run_config import RunConfig
from flows.evaluate import run_evaluation
from tasks.cache.write_queue import MAX_UNWRITTEN
from tests.deployments.cli.conftest import Outcome
from tests.faults.conftest import Run, Server, environment, restart_timer
from tests.prefect_stub import use_stub
from tests.waiting import DEAD_SECONDS

pytestmark = [pytest.mark.prefect, pytest.mark.models, pytest.mark.served]

ASSAY = Path(sys.executable).with_name("assay")
KILLS = int(os.environ.get("ASSAY_TEST_KILLS", "1"))
ROWS = int(os.environ.get("ASSAY_TEST_ROWS", "40"))
METRICS = ("faithfulness", "answer_relevancy", "context_precision", "context_recall", "factual_correctness")
IN_FLIGHT = 16
"""Concurrent requests: those in flight when a run is killed are lost, whatever the batch size of the cache."""
MAX_ASKED_TWICE = 0.02
"""Maximum share of requests asked twice over many kills; for few kills, LOST_PER_KILL is the limit."""
LOST_PER_KILL = 2 * IN_FLIGHT + MAX_UNWRITTEN


class Killable:
    """A run in a separate process group, which shares neither judge server nor stores with another one.

    Args:
        folder: Folder of all files of the run.
        server: Judge server of the run.
        prefect_address: Address of the Prefect server that all runs share.
    """

    def __init__(self, folder: Path, server: Server, prefect_address: ServerAddress) -> None:
        self.folder = folder
        self._environment = environment(folder, prefect_address)
        (folder / "config.yaml").write_text(json.dumps(configuration(folder, server)), encoding="utf-8")

    def start(self, out: str) -> subprocess.Popen[bytes]:
        """Start the run, which writes into a folder."""
        command = [str(ASSAY), "run", str(self.folder / "config.yaml"), "--out", str(self.folder / out)]
        with (self.folder / f"{out}.log").open("wb") as log:
            return subprocess.Popen(command, env=self._environment, stdout=log, stderr=log, start_new_session=True)

    def finish(self, out: str) -> Run:
        """Start the run, wait until it ends, and return it."""
        code = self.start(out).wait()
        assert code == 0, (self.folder / f"{out}.log").read_text(encoding="utf-8")
        return Run(self.folder / out)

    @property
    def asked(self) -> list[str]:
        """Prompts that the server received, in order."""
        return asked_prompts(self.folder)

    def kill_after(self, requests: int, out: str) -> None:
        """Start the run, and kill its process group once the server has received this number of requests."""
        process = self.start(out)
        for _ in wait_for_requests(self.folder, requests):
            assert process.poll() is None, (self.folder / f"{out}.log").read_text(encoding="utf-8")
        os.killpg(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL


def configuration(folder: Path, server: Server) -> dict[str, Any]:
    """Write the rows into a folder and return the configuration of a run over them."""
    source = folder / "rows.jsonl"
    source.write_text("\n".join(json.dumps(row) for row in rows(ROWS)), encoding="utf-8")
    return {
        "source": str(source),
        "metrics": METRICS,
        "judge": {"backend": "server", "server": {"urls": [server.url], "concurrency": IN_FLIGHT}},
        "shard_rows": max(20, ROWS // 5),
    }


def wait_for_requests(folder: Path, count: int) -> Iterator[None]:
    """Yield at intervals until the judge server has logged this number of requests."""
    log = folder / "requests.jsonl"
    log.touch()
    with log.open("rb") as lines:
        seen = 0
        while (seen := seen + lines.read().count(b"\n")) < count:
            yield
            time.sleep(0.02)


def asked_prompts(folder: Path) -> list[str]:
    """Return the prompts that the judge server received, in order; skip a line that was cut off."""
    try:
        lines = (folder / "requests.jsonl").read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    return [json.loads(line)["prompt"] for line in lines if line.endswith("}")]


def rows(count: int) -> list[dict[str, object]]:
    """Return rows without common texts, so each question belongs to one row."""
    return [
        {
            "id": f"r{number}",
            "user_input": f"When does shop {number} open?",
            "response": f"Shop {number} opens at {number % 12}. It closes in the evening.",
            "retrieved_contexts": [f"Shop {number} opens at {number % 11}.", f"Shop {number} sells shoes."],
            "reference": f"Shop {number} opens at {number % 12}.",
        }
        for number in range(count)
    ]


@pytest.fixture(scope="module")
def killable(
    serve: Callable[..., Server], prefect_address: ServerAddress, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[], Killable]:
    """Return a function that creates runs, each with a separate judge server."""

    def make() -> Killable:
        folder = tmp_path_factory.mktemp("killable")
        log = str(folder / "requests.jsonl")
        server = serve("-m", "tests.faults.stub_server", "--log", log)
        server.start()
        return Killable(folder, server, prefect_address)

    return make


@pytest.fixture(scope="module")
def uninterrupted_run(killable: Callable[[], Killable]) -> tuple[Run, list[str]]:
    """Finish a run that is not killed, in this process; return the run, and its prompts."""
    whole = killable()
    content = json.loads((whole.folder / "config.yaml").read_text(encoding="utf-8"))
    with use_stub(), pytest.MonkeyPatch.context() as patch:
        patch.setenv("ASSAY_HOME", str(whole.folder / "home"))
        run_evaluation(RunConfig.model_validate({**content, "out": str(whole.folder / "run")}))
    return Run(whole.folder / "run"), whole.asked


def test_a_run_that_gets_sigterm_says_so_and_continues_later(
    killable: Callable[[], Killable], uninterrupted_run: tuple[Run, list[str]], prefect_address: ServerAddress
) -> None:
    whole, asked = uninterrupted_run
    process = killable()
    command = process.start("run")
    for _ in wait_for_requests(process.folder, len(asked) // 2):
        assert command.poll() is None
    command.terminate()
    assert command.wait(DEAD_SECONDS) == TERMINATED
    log = (process.folder / "run.log").read_text(encoding="utf-8")
    assert "stopping: answers received so far are cached" in log
    assert "interrupted; answers and finished stage tables are stored" in log
    stopped = Run(process.folder / "run").manifest
    assert (stopped["status"], stopped["reason"]) == ("failed", "it was interrupted")
    assert end_of(stopped["run_id"], prefect_address) == "Crashed"
    assert process.finish("run").cells == whole.cells
    assert len(process.asked) - len(asked) <= LOST_PER_KILL


def end_of(run_id: str, prefect_address: ServerAddress) -> str | None:
    """Return the name of the state of a flow run."""
    with use_server(prefect_address), get_client(sync_client=True) as client:
        state = client.read_flow_run(UUID(run_id)).state
    return None if state is None else state.name


def test_resumed_runs_have_the_scores_of_an_uninterrupted_run(
    killable: Callable[[], Killable],
    uninterrupted_run: tuple[Run, list[str]],
    prefect_address: ServerAddress,
    assay: Callable[..., Outcome],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole, asked = uninterrupted_run
    assert max(Counter(asked).values()) == 1
    chance = random.Random(20)
    twice = 0
    for _ in range(KILLS):
        restart_timer()
        process = killable()
        monkeypatch.setenv("ASSAY_HOME", str(process.folder / "home"))
        process.kill_after(chance.randrange(1, len(asked)), "run")
        assert assay("store", "--check").code == 0
        killed = Run(process.folder / "run").manifest["run_id"]
        resumed = process.finish("run")
        assert assay("store", "--check").code == 0
        assert end_of(killed, prefect_address) == "Crashed"
        assert end_of(resumed.manifest["run_id"], prefect_address) == "Completed"
        assert resumed.cells == whole.cells
        assert resumed.manifest["status"] == "completed"
        assert set(process.asked) == set(asked)
        twice += len(process.asked) - len(asked)
    sys.stderr.write(f"{KILLS} kills, {len(asked)} requests per run, {twice} asked twice\n")
    assert twice <= max(LOST_PER_KILL * KILLS, MAX_ASKED_TWICE * KILLS * len(asked))
