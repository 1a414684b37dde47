"""A run whose local Prefect server is killed finishes: it prints its summary, and says that the server is gone."""

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from deployments.local_server.local_server import LocalServer
from tests.faults.conftest import Run, Server
from tests.faults.test_killed import ASSAY, configuration, wait_for_requests
from tests.prefect_servers import clean_environment
from tests.sharing import copy_migrated_database

pytestmark = [pytest.mark.prefect, pytest.mark.models]


COMMANDS = {
    "run": ("run",),
    "monitor": ("monitor",),
    "calibrate": ("calibrate", "--label", "faithful", "--no-keep"),
    "calibrate --judges": ("calibrate", "--label", "faithful", "--judges", "JUDGE,builtin"),
}


def lose_server(
    serve: Callable[..., Server], folder: Path, factory: pytest.TempPathFactory, command: str, *options: str
) -> "tuple[int, str, str]":
    """Run a command whose local Prefect server is killed meanwhile, and return its exit code and what it printed."""
    judge = serve("-m", "tests.faults.stub_server", "--log", str(folder / "requests.jsonl"))
    judge.start(*options)
    config = {**configuration(folder, judge), "metrics": ["faithfulness"]}
    rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text(encoding="utf-8").splitlines()]
    labelled = [json.dumps({**row, "faithful": number % 2}) for number, row in enumerate(rows)]
    (folder / "rows.jsonl").write_text("\n".join(labelled), encoding="utf-8")
    (folder / "config.yaml").write_text(json.dumps(config), encoding="utf-8")
    copy_migrated_database(factory, folder / "home" / "prefect")
    verb, *more = COMMANDS[command]
    process = subprocess.Popen(
        [str(ASSAY), verb, str(folder / "config.yaml"), *(each.replace("JUDGE", judge.url) for each in more)],
        env=clean_environment() | {"ASSAY_HOME": str(folder / "home"), "COLUMNS": "120"},
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    for _ in wait_for_requests(folder, 3):
        assert process.poll() is None
    record = LocalServer.from_home(folder / "home").read()
    assert record is not None
    os.kill(record.pid, signal.SIGKILL)
    out, err = process.communicate()
    return process.returncode, out, err


@pytest.mark.parametrize(
    ("command", "fail_every", "code"), [("run", 0, 0), ("run", 1, 8), ("monitor", 0, 0), ("calibrate", 0, 0)]
)
def test_a_command_ends_with_its_results_and_code_after_its_server_was_killed(  # noqa: PLR0917
    serve: Callable[..., Server],
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    command: str,
    fail_every: int,
    code: int,
) -> None:
    options = ("--fail-every", str(fail_every), "--fail-status", "400")
    found, out, err = lose_server(serve, tmp_path, tmp_path_factory, command, *options)
    assert found == code, out + err
    (folder,) = (tmp_path / "runs").iterdir()
    assert f"runs/{folder.name}" in out
    assert (out + err).count("the Prefect server is gone") == 1, out + err
    assert "Traceback" not in out + err
    assert Run(folder).manifest["status"] == "completed"
    if command == "run":
        assert "40 rows of" in out
    if command == "monitor":
        assert "is now the baseline" in out
        assert json.loads((folder / "outcome.json").read_text(encoding="utf-8"))["accepted"]
    if command == "calibrate":
        assert (folder / "calibration.json").is_file()


def test_a_comparison_of_judges_cannot_begin_the_next_and_says_what_is_kept(
    serve: Callable[..., Server], tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    code, _, err = lose_server(serve, tmp_path, tmp_path_factory, "calibrate --judges")
    assert code == 2, err
    assert "ended while it was used" in err
    assert "Traceback" not in err
