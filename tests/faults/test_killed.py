"""A run that is killed continues where it was: equal scores, and almost nothing asked twice.

The server's own log of requests is the witness. `ASSAY_TEST_KILLS` and `ASSAY_TEST_ROWS` make the series longer.
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

import pytest

from tests.faults.conftest import Run, Server, environment, no_hang

pytestmark = [pytest.mark.prefect, pytest.mark.models]

ASSAY = Path(sys.executable).with_name("assay")
KILLS = int(os.environ.get("ASSAY_TEST_KILLS", "2"))
ROWS = int(os.environ.get("ASSAY_TEST_ROWS", "40"))
METRICS = ("faithfulness", "answer_relevancy", "context_precision", "context_recall", "factual_correctness")
IN_FLIGHT = 16
"""Requests at once: what is on its way when a run is killed is lost, however small the batches of the store."""
MOST_TWICE = 0.02
"""Share of requests that may be asked twice over a long series; a short series has the same loss a kill."""
LOST_A_KILL = 2 * IN_FLIGHT + 64


class Killable:
    """A run as a process group of its own, with a judge server and stores of its own.

    Args:
        folder: where everything of this run lies.
        server: its judge.
        prefect_url: the Prefect server that all share.
    """

    def __init__(self, folder: Path, server: Server, prefect_url: str) -> None:
        self.folder = folder
        self._environment = environment(folder, prefect_url)
        (folder / "config.yaml").write_text(json.dumps(configuration(folder, server)), encoding="utf-8")

    def start(self, out: str) -> subprocess.Popen[bytes]:
        """Starts a run into a folder."""
        command = [str(ASSAY), "run", str(self.folder / "config.yaml"), "--out", str(self.folder / out)]
        with (self.folder / f"{out}.log").open("wb") as log:
            return subprocess.Popen(command, env=self._environment, stdout=log, stderr=log, start_new_session=True)

    def finish(self, out: str) -> Run:
        """Runs to the end."""
        code = self.start(out).wait()
        assert code == 0, (self.folder / f"{out}.log").read_text(encoding="utf-8")
        return Run(self.folder / out)

    @property
    def asked(self) -> list[str]:
        """The prompts that the server was asked, in their order."""
        return asked_prompts(self.folder)

    def kill_after(self, requests: int, out: str) -> None:
        """Starts a run and kills its whole process group when the server has seen so many requests."""
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
    """Yield now and then until the judge has logged so many requests."""
    log = folder / "requests.jsonl"
    log.touch()
    with log.open("rb") as lines:
        seen = 0
        while (seen := seen + lines.read().count(b"\n")) < count:
            yield
            time.sleep(0.02)


def asked_prompts(folder: Path) -> list[str]:
    """Return the prompts that the judge was asked, in their order; a line that was cut off does not count."""
    try:
        lines = (folder / "requests.jsonl").read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    return [json.loads(line)["prompt"] for line in lines if line.endswith("}")]


def rows(count: int) -> list[dict[str, object]]:
    """Rows that have nothing in common, so that every question is asked of one row only."""
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
    serve: Callable[..., Server], prefect_url: str, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[], Killable]:
    """Makes runs, each with a server of its own."""

    def make() -> Killable:
        folder = tmp_path_factory.mktemp("killable")
        server = serve("-m", "tests.faults.stub_server", "--log", str(folder / "requests.jsonl"))
        server.start()
        return Killable(folder, server, prefect_url)

    return make


@pytest.fixture(scope="module")
def undisturbed(killable: Callable[[], Killable]) -> tuple[Run, list[str]]:
    """The run that nobody kills, and what it asked."""
    process = killable()
    return process.finish("run"), process.asked


def test_killed_runs_end_with_the_scores_of_an_undisturbed_one(
    killable: Callable[[], Killable], undisturbed: tuple[Run, list[str]]
) -> None:
    whole, asked = undisturbed
    assert max(Counter(asked).values()) == 1
    chance = random.Random(20)
    twice = 0
    for _ in range(KILLS):
        no_hang()
        process = killable()
        process.kill_after(chance.randrange(1, len(asked)), "run")
        resumed = process.finish("run")
        assert resumed.cells == whole.cells
        assert resumed.manifest["status"] == "completed"
        assert set(process.asked) == set(asked)
        twice += len(process.asked) - len(asked)
    sys.stderr.write(f"{KILLS} kills, {len(asked)} requests a run, {twice} asked twice\n")
    assert twice <= max(LOST_A_KILL * KILLS, MOST_TWICE * KILLS * len(asked))


def test_the_same_run_again_asks_nothing(killable: Callable[[], Killable]) -> None:
    process = killable()
    first = process.finish("run")
    asked = len(process.asked)
    second = process.finish("again")
    assert len(process.asked) == asked
    assert second.cells == first.cells
    assert second.manifest["usage"]["requests"] == 0


def test_of_a_changed_passage_only_its_own_questions_are_asked(killable: Callable[[], Killable]) -> None:
    process = killable()
    process.finish("run")
    cold = len(process.asked)
    changed = rows(ROWS)
    for row in changed[::20]:
        row["retrieved_contexts"] = [f"{row['id']} was closed.", "It sells shoes."]
    source = process.folder / "rows.jsonl"
    source.write_text("\n".join(json.dumps(row) for row in changed), encoding="utf-8")
    process.finish("changed")
    assert 0 < len(process.asked) - cold <= 0.06 * cold
    asked = len(process.asked)
    source.write_text("\n".join(json.dumps(row) for row in reversed(changed)), encoding="utf-8")
    process.finish("reordered")
    renamed = [{**row, "id": f"new-{row['id']}"} for row in changed]
    source.write_text("\n".join(json.dumps(row) for row in [*renamed, *changed]), encoding="utf-8")
    process.finish("renamed-and-duplicated")
    assert len(process.asked) == asked
