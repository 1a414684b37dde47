"""Judge servers that fail during an evaluation: scores equal those of a run without faults, or the run says why.

The server always gives the same answer to a prompt, so scores are compared bit for bit.
"""

import json
import re
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deployments.local_server import ServerAddress
from metric_core.claims.citations import strip_citations
from tasks.models.judges.openai.reply_parsing import NO_JSON
from tests.faults.conftest import EXAMPLE, MOST_SECONDS, ROWS, Cells, Evaluate, Run, Server, configuration, environment

pytestmark = [pytest.mark.prefect, pytest.mark.models, pytest.mark.served]

ASSAY = Path(sys.executable).with_name("assay")
QUOTED = re.compile(r"<quoted (\w+)>\n(.*?)\n</quoted>", re.DOTALL)


def read_log(folder: Path) -> list[dict[str, Any]]:
    """Return the requests that a server received, without those of the probe."""
    return [json.loads(line) for line in (folder / "requests.jsonl").read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def stub(serve: Callable[..., Server]) -> Callable[[Path], Server]:
    """Return a function that creates a stub server that logs into a folder."""
    return lambda folder: serve("-m", "tests.faults.stub_server", "--log", str(folder / "requests.jsonl"))


@pytest.fixture(scope="module")
def faultless_run(stub: Callable[[Path], Server], evaluate: Evaluate, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Return a run without faults."""
    folder = tmp_path_factory.mktemp("faultless")
    server = stub(folder)
    server.start()
    return evaluate(folder, server)


def test_run_without_faults_has_varied_scores_and_no_failed_cell(faultless_run: Run) -> None:
    cells = faultless_run.cells
    assert len({row for row, _ in cells}) == ROWS
    assert not [cell for cell in cells.values() if cell[1] == "failed"]
    assert len({value for value, *_ in cells.values()}) > 40
    asked = read_log(faultless_run.folder.parent)
    assert len(asked) == faultless_run.manifest["usage"]["requests"] > 15 * ROWS


@pytest.mark.parametrize("status", [429, 500])
def test_scores_are_unaffected_by_refused_requests(
    status: int, stub: Callable[[Path], Server], evaluate: Evaluate, faultless_run: Run, tmp_path: Path
) -> None:
    server = stub(tmp_path)
    server.start("--fail-every", "10", "--fail-status", str(status))
    run = evaluate(tmp_path, server)
    assert run.cells == faultless_run.cells
    faults = Counter(line["fault"] for line in read_log(tmp_path))
    assert faults[str(status)] == sum(faults.values()) // 10
    usage, wanted = run.manifest["usage"], faultless_run.manifest["usage"]
    assert usage["requests"] == sum(faults.values()) == wanted["requests"] + faults[str(status)]
    assert usage["failed"] == {}
    assert {name: usage[name] for name in ("questions", "prompt_tokens", "output_tokens")} == {
        name: wanted[name] for name in ("questions", "prompt_tokens", "output_tokens")
    }


def test_each_question_with_a_json_answer_is_found_to_be_about_a_row(faultless_run: Run) -> None:
    asked = [line["prompt"] for line in read_log(faultless_run.folder.parent)]
    with_json = [prompt for prompt in asked if "Answer with JSON" in prompt]
    assert len(with_json) > 2 * ROWS
    assert [prompt for prompt in with_json if not rows_in([prompt])] == []


def test_invalid_json_fails_only_the_cells_of_its_rows(
    stub: Callable[[Path], Server], evaluate: Evaluate, faultless_run: Run, tmp_path: Path
) -> None:
    server = stub(tmp_path)
    server.start("--bad-json-every", "10")
    run = evaluate(tmp_path, server, shard_rows=ROWS)
    bad = [line["prompt"] for line in read_log(tmp_path) if line["fault"] is not None]
    assert len(bad) > 3
    failed = {key: cell for key, cell in run.cells.items() if cell[1] == "failed"}
    assert {reason for _, _, reason in failed.values()} == {NO_JSON}
    assert {row for row, _ in failed} == rows_in(bad)
    assert without(run.cells, failed) == without(faultless_run.cells, failed)
    assert run.manifest["usage"]["failed"] == {NO_JSON: len(bad)}
    assert run.manifest["usage"]["requests"] == len(read_log(tmp_path))
    for metric in json.loads((run.folder / "summary.json").read_text(encoding="utf-8"))["metrics"]:
        assert metric["failed"] == sum(name == metric["metric"] for _, name in failed)
        assert metric["scored"] + metric["undefined"] + metric["failed"] == ROWS


def test_run_survives_a_restart_of_the_server(
    stub: Callable[[Path], Server], evaluate: Evaluate, faultless_run: Run, tmp_path: Path
) -> None:
    server = stub(tmp_path)
    server.start("--die-at", str(len(read_log(faultless_run.folder.parent)) // 2))
    ends: list[int] = []

    def restart() -> None:
        ends.append(server.wait())
        server.start()

    revive = threading.Thread(target=restart)
    revive.start()
    run = evaluate(tmp_path, server)
    revive.join()
    assert ends == [-signal.SIGKILL]
    assert run.cells == faultless_run.cells
    assert run.manifest["status"] == "completed"
    assert run.manifest["usage"]["failed"] == {}
    assert run.manifest["usage"]["questions"] == faultless_run.manifest["usage"]["questions"]


def test_run_ends_with_an_error_if_the_server_stays_down(
    stub: Callable[[Path], Server], prefect_address: ServerAddress, faultless_run: Run, tmp_path: Path
) -> None:
    server = stub(tmp_path)
    server.start("--die-at", str(len(read_log(faultless_run.folder.parent)) // 2))
    config = tmp_path / "assay.yaml"
    config.write_text(json.dumps(configuration(tmp_path, server, unavailable_timeout=2)), encoding="utf-8")
    done = subprocess.run(
        [ASSAY, "run", config],
        env=environment(tmp_path, prefect_address),
        capture_output=True,
        text=True,
        timeout=MOST_SECONDS / 2,
        check=False,
    )
    assert server.wait() == -signal.SIGKILL
    assert done.returncode == 4
    assert done.stdout == ""
    (message,) = [line for line in done.stderr.splitlines() if "error" in line.lower()]
    assert message.startswith(f"error: the judge is lost: {server.url} cannot be reached")
    assert "were answered). Check the server and run again" in message
    assert "Traceback" not in done.stderr
    manifest = Run(tmp_path / "run").manifest
    assert (manifest["status"], f"error: {manifest['reason']}") == ("failed", message)
    left = [path.name for path in (tmp_path / "run").rglob("*") if path.is_file() and not path.name.startswith(".")]
    assert left == ["run.json"], "a table of holes"


def rows_in(prompts: list[str]) -> set[str]:
    """Return the ids of the rows whose claims, questions or context sentences the prompts ask for."""
    asked = [dict(QUOTED.findall(prompt)) for prompt in prompts]
    rows = map(json.loads, EXAMPLE.read_text(encoding="utf-8").splitlines()[:ROWS])
    return {row["id"] for row in rows for quoted in asked if is_about(quoted, row)}


def is_about(quoted: dict[str, str], row: dict[str, Any]) -> bool:
    """Return whether the texts quoted by a prompt belong to a row."""
    if quoted["text"] in (row["response"], strip_citations(row["response"]).text, row["reference"]):
        return True
    sentences = re.sub(r"^\[\d+\] ", "", quoted["text"], flags=re.MULTILINE)
    asked = (quoted.get("question"), sentences.split())
    return asked == (row["user_input"], " ".join(row["retrieved_contexts"]).split())


def without(cells: Cells, left_out: Cells) -> Cells:
    """Return the cells that are not left out."""
    return {key: cell for key, cell in cells.items() if key not in left_out}
