"""A week of nights on a real MLflow server, which is killed for one of them."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import pytest

from tasks.record.outcome import RunOutcome
from tasks.runs.finished_run import FinishedRun
from tests.tasks.models.judges.openai.fake_server import free_port

COMMAND = os.environ.get("MLFLOW_COMMAND") or (shutil.which("mlflow") if find_spec("flask") else None)
"""The command `mlflow` of the full package, which may be in another environment: `MLFLOW_COMMAND` names it."""

pytestmark = [
    pytest.mark.served,
    pytest.mark.skipif(COMMAND is None, reason="no server: MLFLOW_COMMAND names the command of the full package"),
    pytest.mark.skipif(find_spec("mlflow") is None, reason="mlflow-skinny is not installed"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]

HANDBOOK = Path(__file__).parents[3] / "examples" / "handbook.jsonl"
METRICS = ("faithfulness", "answer_similarity")
ROWS = 12

BOT = """
import json, sys, mlflow
rows = [json.loads(line) for line in open(sys.argv[1])][: int(sys.argv[2])]
for row in rows:
    with mlflow.start_span(name="answer") as span:
        span.set_inputs({"question": row["user_input"]})
        span.set_outputs(row["response"])
    row["trace_id"] = span.trace_id
mlflow.flush_trace_async_logging()
print("\\n".join(map(json.dumps, rows)))
"""
SCORED = """
import json, sys, mlflow, rag_assay.mlflow
rows = [json.loads(line) for line in open(sys.argv[1])]
data = [
    {
        "inputs": {"question": row["user_input"]},
        "outputs": {"response": row["response"], "contexts": row["retrieved_contexts"]},
        "expectations": {"expected_response": row["reference"]},
    }
    for row in rows
]
scorers = [rag_assay.mlflow.scorer(metric) for metric in sys.argv[2:]]
found = mlflow.genai.evaluate(data=data, scorers=scorers).result_df
print(json.dumps({metric: sorted(found[f"{metric}/value"]) for metric in sys.argv[2:]}))
"""


class Server:
    """A server whose database and files outlive it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self.url = f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        command = [str(COMMAND), "server", "--host", "127.0.0.1", "--port", str(self.port), "--workers", "1"]
        places = ["--backend-store-uri", f"sqlite:///{self.folder}/mlflow.db", "--artifacts-destination"]
        quiet: dict[str, Any] = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.DEVNULL,
            "stderr": subprocess.DEVNULL,
        }
        command += [*places, str(self.folder / "artifacts")]
        self.process = subprocess.Popen(command, cwd=self.folder, start_new_session=True, **quiet)
        end = time.monotonic() + 120
        while not self._is_up():
            assert time.monotonic() < end, "the server does not start"
            time.sleep(0.5)

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def _is_up(self) -> bool:
        try:
            return httpx.get(f"{self.url}/health", timeout=1).is_success
        except httpx.HTTPError:
            return False


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    found = Server(tmp_path)
    found.start()
    yield found
    found.kill()


@pytest.fixture
def call(server: Server, server_home: Path, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Return a function that runs Python in the folder of the evaluation."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith(("ASSAY_", "PREFECT_", "PYTEST_"))}
    environment = {**kept, "ASSAY_HOME": str(server_home), "MLFLOW_TRACKING_URI": server.url}

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *map(str, arguments)]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    return run


def test_after_a_week_nothing_is_lost_and_nothing_is_there_twice(
    server: Server, call: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    from mlflow import MlflowClient
    from mlflow.tracing.client import TracingClient

    (tmp_path / "rows.jsonl").write_text(call("-c", BOT, HANDBOOK, ROWS).stdout, encoding="utf-8")
    (tmp_path / "gate.toml").write_text('absolute = ["faithfulness >= 0.3"]\nmin_rows = 5\n', encoding="utf-8")
    lines = ['source = "rows.jsonl"', 'name = "handbook"', f"metrics = {json.dumps(METRICS)}", 'slices = ["topic"]']
    lines += ["history = 'history.db'", "[sinks]", f'mlflow = "{server.url}"', "[deploy]", 'gate = "gate.toml"']
    lines += ["baselines = 'baselines'"]
    (tmp_path / "assay.toml").write_text("\n".join(lines), encoding="utf-8")
    said = []
    for night in range(1, 8):
        if night == 4:
            server.kill()
        done = call("-m", "rag_assay", "monitor", "assay.toml")
        assert done.returncode == 0, done.stderr
        said.append(" ".join(done.stderr.split()))
        if night == 4:
            server.start()
    assert ["has not accepted the results of 1 run" in text for text in said] == [False] * 3 + [True] + [False] * 3

    client: Any = MlflowClient(server.url)
    experiment = client.get_experiment_by_name("handbook").experiment_id
    runs = {run.data.tags["rag_assay.run_id"]: run for run in client.search_runs([experiment])}
    folders = {found.run_id: found for found in map(FinishedRun, (tmp_path / "runs").iterdir())}
    assert runs.keys() == folders.keys()
    assert (len(client.search_runs([experiment])), len(runs)) == (7, 7)
    for run_id, run in runs.items():
        check_run(client, run, folders[run_id])
    traces: Any = TracingClient(server.url)
    for row in map(json.loads, (tmp_path / "rows.jsonl").read_text(encoding="utf-8").splitlines()):
        found = traces.get_trace_info(row["trace_id"]).assessments
        counts = Counter((each.name, each.run_id) for each in found)
        assert counts == {(metric, run.info.run_id): 1 for metric in METRICS for run in runs.values()}

    of_mlflow = json.loads(call("-c", SCORED, "rows.jsonl", *METRICS).stdout.splitlines()[-1])
    assert of_mlflow == scores_of(next(iter(folders.values())))


def check_run(client: Any, run: Any, folder: FinishedRun) -> None:
    outcome = RunOutcome.model_validate_json((folder.folder / "outcome.json").read_bytes())
    for summary in folder.summary.metrics:
        assert summary.distribution is not None
        assert summary.distribution.interval is not None
        interval = (summary.distribution.interval.low, summary.distribution.interval.high)
        assert run.data.metrics[summary.metric] == summary.distribution.mean
        assert (run.data.metrics[f"{summary.metric}.low"], run.data.metrics[f"{summary.metric}.high"]) == interval
        assert run.data.metrics[f"{summary.metric}.scored"] == summary.scored
    assert run.info.status == "FINISHED"
    assert run.data.tags["mlflow.note.content"] == outcome.message
    assert run.data.params["judge"]
    files = {each.path for each in client.list_artifacts(run.info.run_id)}
    assert {"report.html", "outcome.json", "run.json", "summary.json", "slices.json"} <= files
    assert ("comparison.html" in files) == (folder.folder / "comparison.html").is_file()


def scores_of(folder: FinishedRun) -> Mapping[str, list[float]]:
    import pyarrow.parquet as pq

    rows = pq.read_table(folder.folder / "scores.parquet").to_pylist()
    return {metric: sorted(row["value"] for row in rows if row["metric"] == metric) for metric in METRICS}
