"""The same rows on threads, on Dask and on Ray: equal scores, bit for bit, and nothing asked twice.

The plain run has SQLite and a local folder; the others have PostgreSQL and S3. `ASSAY_TEST_ROWS` makes the runs longer.
"""

import json
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from flows.config.run_config import RunConfig
from flows.execution.runners import runner_of
from metric_core.errors import ConfigError, MissingDependencyError
from tests.faults.conftest import ROOT, Cells, Run, Server, environment
from tests.postgres import new_database
from tests.scale.object_store import BUCKET, running_object_store

pytestmark = [pytest.mark.prefect, pytest.mark.models]

ASSAY = Path(sys.executable).with_name("assay")
ROWS = int(os.environ.get("ASSAY_TEST_ROWS", "24"))
SHARD_ROWS = max(12, min(250, ROWS // 4))
WORKERS = 2
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
    """Rows that share texts with rows of other shards, so that shards want the same vectors and entities."""
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
        cells: its scores.
        manifest: its run.json.
        asked: the prompts that the judge's server was asked.
        seconds: from the start of its process to its end.
    """

    cells: Cells
    manifest: dict[str, Any]
    asked: Counter[str]
    seconds: float

    @property
    def digests(self) -> dict[str, list[str]]:
        """Digests of the tables of every stage, shard by shard."""
        return {stage: entry["digests"] for stage, entry in self.manifest["stages"].items()}

    @property
    def questions(self) -> dict[str, int]:
        """Questions of every stage."""
        return {stage: entry["questions"] for stage, entry in self.manifest["stages"].items()}


@dataclass
class Runs:
    """Runs over the same rows, as processes of their own, each with a judge server of its own.

    Args:
        folder: where everything lies.
        serve: makes judge servers.
        environment: of the processes.
    """

    folder: Path
    serve: Callable[..., Server]
    environment: dict[str, str]

    def __call__(self, name: str, **options: Any) -> Finished:
        source = self.folder / "rows.jsonl"
        source.write_text("\n".join(json.dumps(row) for row in rows(ROWS)), encoding="utf-8")
        log = self.folder / f"{name}.requests.jsonl"
        server = self.serve("-m", "tests.faults.stub_server", "--log", str(log), "--max-seconds", "1800")
        server.start()
        config = {
            "source": str(source),
            "metrics": METRICS,
            "judge": {"backend": "server", "server": {"urls": [server.url], "concurrency": 32}},
            "shard_rows": SHARD_ROWS,
            "workers": WORKERS,
            "out": str(self.folder / name),
            **options,
        }
        file = self.folder / f"{name}.yaml"
        file.write_text(json.dumps(config), encoding="utf-8")
        start = time.monotonic()
        done = subprocess.run(
            [str(ASSAY), "run", str(file)],
            env=self.environment | {"ASSAY_HOME": str(self.folder / f"{name}.home")},
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        seconds = time.monotonic() - start
        server.stop()
        assert done.returncode == 0, done.stderr
        asked = [json.loads(line)["prompt"] for line in log.read_text("utf-8").splitlines()] if log.exists() else []
        run = Run(self.folder / name)
        usage = run.manifest["usage"]
        print(f"{name}: {ROWS} rows in {seconds:.1f} s, {len(asked)} requests, {usage['questions']} questions")
        return Finished(run.cells, run.manifest, Counter(asked), seconds)


@pytest.fixture(scope="module")
def runs(serve: Callable[..., Server], prefect_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    """Makes runs; S3 is there for those that want it."""
    folder = tmp_path_factory.mktemp("scale")
    with running_object_store(folder) as s3:
        yield Runs(folder, serve, environment(folder, prefect_url) | s3)


@pytest.fixture(scope="module")
def plain(runs: Runs) -> Finished:
    """The run that the others are held against: threads, SQLite, a local folder."""
    return runs("plain")


@pytest.fixture(scope="module")
def databases(postgres_server: Path) -> dict[str, str]:
    """An empty database for each engine."""
    return {engine: new_database(postgres_server) for engine in ("dask", "ray")}


@pytest.fixture(scope="module")
def on_dask(runs: Runs, databases: dict[str, str]) -> Finished:
    """The run on Dask, with stores that other machines can reach."""
    needs("dask")
    return runs("dask", runner="dask", cache=databases["dask"], tables=f"s3://{BUCKET}/dask")


@pytest.fixture(scope="module")
def on_ray(runs: Runs, databases: dict[str, str]) -> Finished:
    """The run on Ray, with stores of its own."""
    needs("ray")
    return runs("ray", runner="ray", cache=databases["ray"], tables=f"s3://{BUCKET}/ray")


def needs(engine: str) -> None:
    """Skips where an engine is not installed."""
    module = {"dask": "prefect_dask", "ray": "prefect_ray"}[engine]
    if find_spec(module) is None:
        pytest.skip(f"no {engine}: {module} of the extra `{engine}` can not be imported")


@contextmanager
def dask_cluster(environment: dict[str, str]) -> Iterator[str]:
    """The address of a Dask cluster that runs while the block lasts."""
    command = [sys.executable, "-m", "tests.scale.cluster"]
    alien = {name: value for name, value in environment.items() if not name.startswith(("PREFECT_", "ASSAY_"))}
    process = subprocess.Popen(
        command, cwd=ROOT, env=alien, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield process.stdout.readline().decode().strip()
    finally:
        process.stdin.close()
        process.wait()
        process.stdout.close()


@pytest.mark.parametrize("engine", ["dask", "ray"])
def test_an_engine_gives_the_scores_of_a_plain_run(
    engine: str, plain: Finished, request: pytest.FixtureRequest
) -> None:
    run: Finished = request.getfixturevalue(f"on_{engine}")
    assert run.cells == plain.cells
    assert run.digests == plain.digests
    assert run.asked == plain.asked
    assert max(run.asked.values()) == 1
    assert run.questions == plain.questions


def test_another_engine_finds_what_one_has_computed(
    runs: Runs, plain: Finished, on_dask: Finished, databases: dict[str, str]
) -> None:
    """Tables and their records lie in S3, answers in PostgreSQL; the new run's home is empty."""
    after = runs("after", cache=databases["dask"], tables=f"s3://{BUCKET}/dask")
    assert after.cells == on_dask.cells == plain.cells
    assert not after.asked
    assert after.manifest["usage"]["stored"] == plain.manifest["usage"]["questions"]


@pytest.mark.skipif("ASSAY_TEST_ROWS" not in os.environ, reason="one more cluster: set ASSAY_TEST_ROWS")
def test_a_cluster_that_is_running_is_used_and_answers_suffice(
    runs: Runs, plain: Finished, on_dask: Finished, databases: dict[str, str]
) -> None:
    """The workers know neither ASSAY_HOME nor the Prefect server, and no table is there."""
    assert on_dask.asked
    with dask_cluster(runs.environment) as address:
        run = runs("cluster", runner=address, cache=databases["dask"], tables=f"s3://{BUCKET}/other")
    assert run.digests == plain.digests
    assert not run.asked


def test_a_cluster_elsewhere_needs_stores_that_it_can_reach() -> None:
    config = RunConfig.model_validate({"runner": "tcp://scheduler.example:8786", "tables": "s3://bucket/assay"})
    with pytest.raises(ConfigError, match="answers would be files of this machine"):
        runner_of(config)


@pytest.mark.parametrize("engine", ["dask", "ray"])
def test_an_engine_that_is_not_installed_is_named_with_its_command(
    engine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, engine, None)
    monkeypatch.setitem(sys.modules, f"prefect_{engine}.task_runners", None)
    with pytest.raises(MissingDependencyError, match=rf"pip install 'rag-assay\[{engine}\]'"):
        runner_of(RunConfig.model_validate({"runner": engine}))
