"""Folders that cannot be written and files that were changed: a clear message or a recomputation, no wrong score.

A limit on the size of files stands for a full disk, because both fail in the same calls.
"""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from deployments.local_server import ServerAddress
from tests.deployments.cli.conftest import Outcome
from tests.faults.conftest import MOST_SECONDS, ROOT, ROWS, Evaluate, Run, Server, configuration, environment

RUNS = """
import json, resource, sys
from metric_core.errors import AssayError
from flows.config.run_config import RunConfig
from flows.evaluate import run_evaluation

_, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
for limit, config in json.load(sys.stdin):
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit or hard, hard))
    try:
        run_evaluation(RunConfig.model_validate(config))
    except AssayError as error:
        print(json.dumps([type(error).__name__, str(error)]))
    else:
        print(json.dumps(None))
"""
CLOSED = """
import os, sys
from metric_core.errors import AssayError
from tasks.rows.table_store import TableStore
from tests.tasks.builders import samples_table
table = samples_table({"user_input": "Why?"})
TableStore(sys.argv[2]).write(table)
os.chmod(sys.argv[1], 0o555)
if os.geteuid() == 0:
    os.seteuid(65534)
try:
    TableStore(sys.argv[1]).write(table)
except AssayError as error:
    print(error)
"""


@pytest.fixture
def server(serve: Callable[..., Server], tmp_path: Path) -> Server:
    """Return a running judge server that logs its prompts and answers each one in one way only."""
    server = serve("-m", "tests.faults.stub_server", "--log", str(tmp_path / "requests.jsonl"))
    server.start()
    return server


def count_questions(folder: Path) -> int:
    """Return the number of questions that the judge received."""
    log = folder / "requests.jsonl"
    return len(log.read_bytes().splitlines()) if log.exists() else 0


def run_with_limits(
    folder: Path, prefect_address: ServerAddress, runs: Sequence[tuple[int | None, Mapping[str, Any]]]
) -> list[list[str] | None]:
    """Run in a separate process, each run with a limit on the size of files, and return its error or None."""
    done = subprocess.run(
        [sys.executable, "-c", RUNS],
        input=json.dumps(runs),
        cwd=ROOT,
        env=environment(folder, prefect_address) | {"PREFECT_LOGGING_LEVEL": "CRITICAL"},
        capture_output=True,
        text=True,
        timeout=MOST_SECONDS / 2,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.served
@pytest.mark.prefect
@pytest.mark.models
def test_next_run_completes_a_run_that_a_full_disk_ended(
    server: Server, prefect_address: ServerAddress, evaluate: Evaluate, tmp_path: Path
) -> None:
    config = configuration(tmp_path, server)
    behind_a_file = str(tmp_path / "requests.jsonl" / "tables")
    (tmp_path / "requests.jsonl").touch()
    barred, no_table, no_report, last = run_with_limits(
        tmp_path,
        prefect_address,
        [(None, config | {"tables": behind_a_file}), (11_500, config), (100_000, config), (None, config)],
    )
    assert barred is not None
    assert "Not a directory" in barred[1]
    assert no_table is not None
    assert ".parquet cannot be written: [Errno 27] File too large" in no_table[1]
    assert no_report is not None
    assert no_report[0] == "RunFolderError"
    assert "cannot be written: File too large" in no_report[1]
    assert last is None
    assert not list(tmp_path.rglob("*.tmp"))
    whole = Run(tmp_path / "run")
    assert whole.manifest["usage"]["requests"] == 0  # all tables were written before the report failed
    before = count_questions(tmp_path)
    assert evaluate(tmp_path / "complete", server).cells == whole.cells
    # The cache did not fit on the disk either, so questions that two shards share were asked twice.
    assert 0 <= before - (count_questions(tmp_path) - before) < ROWS


def test_read_only_folder_is_reported_and_unchanged() -> None:
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        closed = Path(name, "closed")
        closed.mkdir()
        command = [sys.executable, "-c", CLOSED, str(closed), str(Path(name, "open"))]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "cannot be written: [Errno 13] Permission denied" in done.stdout
        assert list(closed.iterdir()) == []


@pytest.mark.prefect
@pytest.mark.models
def test_damaged_results_and_indexes_are_recomputed(server: Server, evaluate: Evaluate, tmp_path: Path) -> None:
    first = evaluate(tmp_path, server, shard_rows=ROWS)
    cells, questions = first.cells, count_questions(tmp_path)
    tables = tmp_path / "home" / "tables"
    segments = sorted(tables.glob("rows/*/*/*.parquet"))
    assert len(segments) > 3
    for number, path in enumerate(segments):
        content = bytearray(path.read_bytes())
        content[len(content) // 3] ^= 0x10
        path.write_bytes(content[: len(content) // 2] if number % 2 else content)
    again = evaluate(tmp_path, server, shard_rows=ROWS)
    assert again.cells == cells
    indexes = list(tables.glob("rows/*/*/*.index"))
    assert len(indexes) > len(segments)
    for index in indexes:
        index.write_bytes(index.read_bytes()[:-30])
    again = evaluate(tmp_path, server, shard_rows=ROWS)
    assert again.cells == cells
    assert count_questions(tmp_path) == questions  # all answers were cached


@pytest.mark.prefect
@pytest.mark.models
def test_changed_table_of_a_finished_run_is_refused_by_a_rerun(
    server: Server, evaluate: Evaluate, assay: Callable[..., Outcome], prefect_stub: object, tmp_path: Path
) -> None:
    del prefect_stub
    run = evaluate(tmp_path, server, shard_rows=ROWS)
    path = run.folder / "stages" / "verdicts.parquet"
    path.write_bytes(path.read_bytes()[:-20])
    done = assay("rerun", str(run.folder), "--rows", "all", "--stage", "aggregation")
    assert (done.code, done.out) == (5, "")
    assert "verdicts.parquet" in done.err
    assert "Traceback" not in done.err
