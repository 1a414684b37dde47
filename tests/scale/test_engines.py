"""Evaluations on threads, Dask and Ray: scores are equal, bit for bit, and no question is asked twice.

The run on threads uses SQLite and a local folder, the others use PostgreSQL and S3. Clusters are tried if
`ASSAY_TEST_ROWS` says with how many rows (`just test-engines`).
"""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from deployments.local_server import ServerAddress
from flows.config.loading import load_config
from flows.config.run_config import RunConfig
from flows.evaluate import run_evaluation
from flows.execution.runners import runner_of
from flows.planning.planner import plan_without_data
from metric_core.errors import ConfigError, MissingDependencyError
from tests.deployments.public.foreign import write_modules
from tests.faults.conftest import ROOT, Cells, Run, Server, environment
from tests.postgres import new_database
from tests.prefect_stub import use_stub
from tests.scale.object_store import BUCKET, running_object_store

pytestmark = [pytest.mark.prefect, pytest.mark.models]

on_clusters = pytest.mark.skipif(
    "ASSAY_TEST_ROWS" not in os.environ, reason="clusters: run it with `just test-engines`"
)

ROWS = int(os.environ.get("ASSAY_TEST_ROWS", "0"))
SHARD_ROWS = max(12, min(250, ROWS // 4))
METRICS = (
    "faithfulness",
    "answer_relevancy",
    "answer_similarity",
    "context_precision",
    "context_recall",
    "context_entity_recall",
    "factual_correctness",
)


def rows(count: int) -> list[dict[str, Any]]:
    """Return rows that share texts across shards, so several shards need the same vectors and entities."""
    return [
        {
            "id": f"r{number}",
            "user_input": f"When does shop {number} of Dublin open?",
            "response": f"Shop {number} opens at {number % 12}. It closes in the evening. Mr. Byrne owns it.",
            "retrieved_contexts": [f"Shop {number} opens at {number % 11}.", f"Anna Byrne sells {number % 7} shoes."],
            "reference": f"The shop of Anna Byrne opens at {number % 12}.",
        }
        for number in range(count)
    ]


@dataclass(frozen=True)
class Finished:
    """A finished run.

    Args:
        cells: Scores by row id and metric.
        manifest: Content of run.json.
        asked: Number of requests per prompt that the judge server received.
        seconds: Duration of the process.
        said: Text that the process wrote to its standard error.
    """

    cells: Cells
    manifest: dict[str, Any]
    asked: Counter[str]
    seconds: float
    said: str

    @property
    def digests(self) -> dict[str, list[str]]:
        """Digests of the tables of each stage, in the order of the shards."""
        return {stage: entry["digests"] for stage, entry in self.manifest["stages"].items()}

    @property
    def questions(self) -> dict[str, int]:
        """Number of questions per stage."""
        return {stage: entry["questions"] for stage, entry in self.manifest["stages"].items()}


@dataclass
class Runs:
    """Runs over the same rows, each with a separate judge server.

    Args:
        folder: Folder of all files.
        serve: Function that creates judge servers.
        environment: Environment of the processes.
    """

    folder: Path
    serve: Callable[..., Server]
    environment: dict[str, str]

    def __call__(self, name: str, **options: Any) -> Finished:
        """Run in a separate process."""
        return self._run(name, options, self._start)

    def here(self, name: str) -> Finished:
        """Run in this process."""
        return self._run(name, {}, self._evaluate)

    def _run(self, name: str, options: Mapping[str, Any], run: Callable[[str, Path], str]) -> Finished:
        source = self.folder / "rows.jsonl"
        source.write_text("\n".join(json.dumps(row) for row in rows(ROWS)), encoding="utf-8")
        log = self.folder / f"{name}.requests.jsonl"
        server = self.serve("-m", "tests.faults.stub_server", "--log", str(log))
        server.start()
        config = {
            "source": str(source),
            "metrics": METRICS,
            "judge": {"backend": "server", "server": {"urls": [server.url], "concurrency": 32}},
            "shard_rows": SHARD_ROWS,
            "workers": 2,
            "out": str(self.folder / name),
            **options,
        }
        file = self.folder / f"{name}.yaml"
        file.write_text(json.dumps(config), encoding="utf-8")
        start = time.monotonic()
        said = run(name, file)
        seconds = time.monotonic() - start
        server.stop()
        asked = [json.loads(line)["prompt"] for line in log.read_text("utf-8").splitlines()] if log.exists() else []
        finished = Run(self.folder / name)
        usage = finished.manifest["usage"]
        print(f"{name}: {ROWS} rows in {seconds:.1f} s, {len(asked)} requests, {usage['questions']} questions")
        return Finished(finished.cells, finished.manifest, Counter(asked), seconds, said)

    def _start(self, name: str, file: Path) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "rag_assay", "run", str(file)],
            env=self.environment | {"ASSAY_HOME": str(self.folder / f"{name}.home")},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stderr

    def _evaluate(self, name: str, file: Path) -> str:
        with use_stub(), pytest.MonkeyPatch.context() as patch:
            patch.setenv("ASSAY_HOME", str(self.folder / f"{name}.home"))
            run_evaluation(load_config(file))
        return ""


@pytest.fixture(scope="module")
def runs(
    serve: Callable[..., Server], prefect_address: ServerAddress, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Runs]:
    """Yield a function that runs evaluations, with S3 available to them."""
    folder = tmp_path_factory.mktemp("scale")
    with running_object_store(folder) as s3:
        search = os.pathsep.join(filter(None, (str(write_modules(folder / "user")), os.environ.get("PYTHONPATH"))))
        yield Runs(folder, serve, environment(folder, prefect_address) | s3 | {"PYTHONPATH": search})


@pytest.fixture(scope="module")
def plain(runs: Runs) -> Finished:
    """Return the run that the others are compared with: threads, SQLite and a local folder."""
    return runs.here("plain")


@pytest.fixture(scope="module")
def databases(postgres_server: Path) -> dict[str, str]:
    """Return the URL of an empty database for each engine."""
    return {engine: new_database(postgres_server) for engine in ("dask", "ray")}


@pytest.fixture(scope="module")
def on_dask(runs: Runs, databases: dict[str, str]) -> Finished:
    """Return a run on Dask, with stores that other machines can reach."""
    skip_without("dask")
    return runs("dask", runner="dask", cache=databases["dask"], tables=f"s3://{BUCKET}/dask")


@pytest.fixture(scope="module")
def on_ray(runs: Runs, databases: dict[str, str]) -> Finished:
    """Return a run on Ray, which shares no store with the run on Dask."""
    skip_without("ray")
    return runs("ray", runner="ray", cache=databases["ray"], tables=f"s3://{BUCKET}/ray")


def skip_without(engine: str) -> None:
    """Skip the test if an engine is not installed."""
    module = {"dask": "prefect_dask", "ray": "prefect_ray"}[engine]
    if find_spec(module) is None:
        pytest.skip(f"no {engine}: {module} of the extra `{engine}` cannot be imported")


@contextmanager
def dask_cluster(environment: dict[str, str]) -> Iterator[str]:
    """Run a Dask cluster, and yield its address."""
    command = [sys.executable, "-m", "tests.scale.cluster"]
    plain_environment = {
        name: value for name, value in environment.items() if not name.startswith(("PREFECT_", "ASSAY_"))
    }
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=plain_environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield process.stdout.readline().decode().strip()
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()


@on_clusters
@pytest.mark.parametrize("engine", ["dask", "ray"])
def test_engines_give_the_scores_of_threads(engine: str, plain: Finished, request: pytest.FixtureRequest) -> None:
    run: Finished = request.getfixturevalue(f"on_{engine}")
    assert run.cells == plain.cells
    assert run.digests == plain.digests
    assert run.asked == plain.asked
    assert max(run.asked.values()) == 1
    assert run.questions == plain.questions


@on_clusters
def test_the_workers_of_dask_end_before_they_are_killed(on_dask: Finished) -> None:
    assert on_dask.said
    assert "killing" not in on_dask.said


@on_clusters
def test_results_of_one_engine_are_reused_by_another(
    runs: Runs, plain: Finished, on_dask: Finished, databases: dict[str, str]
) -> None:
    """Run with tables in S3, answers in PostgreSQL and an empty home."""
    after = runs("after", cache=databases["dask"], tables=f"s3://{BUCKET}/dask")
    assert after.cells == on_dask.cells == plain.cells
    assert not after.asked
    assert after.manifest["usage"]["stored"] == plain.manifest["usage"]["questions"]


@on_clusters
def test_running_cluster_reuses_cached_answers_without_tables(
    runs: Runs, plain: Finished, on_dask: Finished, databases: dict[str, str]
) -> None:
    """Run on workers without ASSAY_HOME and Prefect settings, with cached answers and no tables."""
    assert on_dask.asked
    with dask_cluster(runs.environment) as address:
        run = runs("cluster", runner=address, cache=databases["dask"], tables=f"s3://{BUCKET}/other")
    assert run.digests == plain.digests
    assert not run.asked


def test_cluster_on_another_machine_needs_stores_that_it_can_reach() -> None:
    config = RunConfig.model_validate({"runner": "tcp://scheduler.example:8786", "tables": "s3://bucket/assay"})
    with pytest.raises(ConfigError, match="cache would be files of this machine"):
        runner_of(plan_without_data(config).storage, config.cache)


@pytest.mark.parametrize("engine", ["dask", "ray"])
def test_missing_engine_is_reported_with_the_command_that_installs_it(
    engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, engine, None)
    monkeypatch.setitem(sys.modules, f"prefect_{engine}.task_runners", None)
    with pytest.raises(MissingDependencyError, match=rf"pip install 'rag-assay\[{engine}\]'"):
        runner_of(plan_without_data(RunConfig.model_validate({"runner": engine})).storage, None)
