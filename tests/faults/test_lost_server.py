"""Commands whose local Prefect server is killed finish: they print their summary, and say that the server is gone."""

import json
import os
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from deployments.local_server.local_server import LocalServer
from tests.faults.conftest import Run, Server
from tests.faults.test_killed import ASSAY, configuration, wait_for_requests
from tests.prefect_servers import clean_environment
from tests.sharing import prepare_home

pytestmark = [pytest.mark.prefect, pytest.mark.models, pytest.mark.served]


@dataclass(frozen=True)
class Command:
    """A command that asks a judge server.

    Args:
        arguments: Verb and options; JUDGE stands for the URL of the judge server.
        fail_every: Number of the question that fails, and of each multiple; 0 for none.
    """

    arguments: tuple[str, ...]
    fail_every: int = 0


COMMANDS = {
    "failing run": Command(("run",), fail_every=1),
    "monitor": Command(("monitor",)),
    "calibrate": Command(("calibrate", "--label", "faithful", "--no-keep")),
    "calibrate --judges": Command(("calibrate", "--label", "faithful", "--judges", "JUDGE,builtin")),
}


@dataclass(frozen=True)
class Ended:
    """A command whose server was killed, once it has ended.

    Args:
        folder: Its working folder.
        code: Exit code.
        out: Text on the standard output.
        err: Text on the error output.
    """

    folder: Path
    code: int
    out: str
    err: str


@pytest.fixture(scope="module")
def outcomes(serve: Callable[..., Server], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Ended]:
    """Start the commands on one local server, kill it while all of them wait for their judges, and let them end."""
    home, hold = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("hold") / "hold"
    prepare_home(tmp_path_factory, home)
    hold.touch()
    started = {name: start(command, serve, tmp_path_factory, home, hold) for name, command in COMMANDS.items()}
    for folder, process in started.values():
        for _ in wait_for_requests(folder, 3):
            assert process.poll() is None
    record = LocalServer.from_home(home).read()
    assert record is not None
    os.kill(record.pid, signal.SIGKILL)
    hold.unlink()
    found = {}
    for name, (folder, process) in started.items():
        out, err = process.communicate()
        found[name] = Ended(folder, process.returncode, out, err)
    return found


def start(
    command: Command, serve: Callable[..., Server], factory: pytest.TempPathFactory, home: Path, hold: Path
) -> "tuple[Path, subprocess.Popen[str]]":
    """Start a command with a judge server and stores of its own, and return its working folder and its process."""
    folder = factory.mktemp("command")
    judge = serve("-m", "tests.faults.stub_server", "--log", str(folder / "requests.jsonl"))
    judge.start("--fail-every", str(command.fail_every), "--fail-status", "400", "--hold", str(hold))
    stores = {"cache": str(folder / "answers.db"), "tables": str(folder / "tables")}
    config = {**configuration(folder, judge), "metrics": ["faithfulness"], **stores}
    rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text(encoding="utf-8").splitlines()]
    labelled = [json.dumps({**row, "faithful": number % 2}) for number, row in enumerate(rows)]
    (folder / "rows.jsonl").write_text("\n".join(labelled), encoding="utf-8")
    (folder / "config.yaml").write_text(json.dumps(config), encoding="utf-8")
    verb, *more = command.arguments
    process = subprocess.Popen(
        [str(ASSAY), verb, str(folder / "config.yaml"), *(each.replace("JUDGE", judge.url) for each in more)],
        env=clean_environment() | {"ASSAY_HOME": str(home), "COLUMNS": "120"},
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    return folder, process


@pytest.mark.parametrize(
    ("name", "code", "file", "words"),
    [
        ("failing run", 8, "report.html", "40 rows of"),
        ("monitor", 0, "outcome.json", "is now the baseline"),
        ("calibrate", 0, "calibration.json", ""),
    ],
)
def test_a_command_ends_with_its_results_and_code_after_its_server_was_killed(
    name: str, code: int, file: str, words: str, outcomes: dict[str, Ended]
) -> None:
    found = outcomes[name]
    told = found.out + found.err
    assert found.code == code, told
    (folder,) = (found.folder / "runs").iterdir()
    assert f"runs/{folder.name}" in found.out
    assert words in found.out
    assert told.count("the Prefect server is gone") == 1, told
    assert "Traceback" not in told
    assert Run(folder).manifest["status"] == "completed"
    assert (folder / file).is_file()
    assert name != "monitor" or json.loads((folder / file).read_text(encoding="utf-8"))["accepted"]


def test_a_comparison_of_judges_cannot_begin_the_next_and_says_what_is_kept(outcomes: dict[str, Ended]) -> None:
    found = outcomes["calibrate --judges"]
    assert found.code == 2, found.err
    assert "ended while it was used" in found.err
    assert "Traceback" not in found.err
