"""Jobs of eval-hub: the documented job and its results, and the messages about invalid jobs."""

import json
import re
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar

import httpx
import pytest

from deployments.cli.main import main
from deployments.eval_hub import job_verb
from deployments.eval_hub.hub_callback import HubCallback
from deployments.eval_hub.job_config import DataFolders, JobOptions, build_config
from deployments.eval_hub.job_results import JobResults
from deployments.eval_hub.job_spec import BENCHMARKS, JobSpec
from flows.evaluate import Evaluation
from metric_core.errors import ConfigError, SourceError, UnknownMetricError
from metric_core.records import Score
from metric_core.stages import Stage
from tasks.runtime.release import version
from tests.tasks.models.embedders.embedding_server import EmbeddingServer
from tests.tasks.models.judges.openai.fake_server import FakeServer
from tests.tasks.reports.folders import write_run

PAGE = Path(__file__).parents[3] / "docs" / "eval-hub.md"
ROWS = [
    {
        "asked": f"What is rule {number}?",
        "told": f"Rule {number} is to be kind.",
        "retrieved_contexts": [f"Rule {number}: be kind."],
        "reference": f"Rule {number} says: be kind.",
    }
    for number in range(7)
]


def documented_job() -> dict[str, Any]:
    found = re.search(r"^```json\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert found is not None
    return dict(json.loads(found[1]))


def minimal(**parameters: Any) -> dict[str, Any]:
    model = {"url": "http://127.0.0.1:9", "name": "m"}
    return {"id": "1", "benchmark_id": "ragas_rag_default", "model": model, "parameters": parameters}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    lines = [json.dumps(row) for row in ROWS]
    lines.insert(1, '{"asked": "where')
    (folder / "handbook.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder


@pytest.fixture
def embeddings() -> Iterator[EmbeddingServer]:
    server = EmbeddingServer()
    yield server
    server.stop()


@pytest.mark.prefect
@pytest.mark.models
@pytest.mark.usefixtures("prefect_stub")
def test_documented_job_returns_the_documented_results(
    data: Path,
    embeddings: EmbeddingServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    job = documented_job()
    with FakeServer(models=[job["model"]["name"]]) as judge:
        job["model"]["url"] = judge.url.removesuffix("/v1")
        job["parameters"] |= {"embedding_url": embeddings.url, "embedding_model": "embedder"}
        file = tmp_path / "job.json"
        file.write_text(json.dumps(job), encoding="utf-8")
        options = ["--data", str(data), "--out", str(tmp_path / "run"), "--quiet"]
        monkeypatch.setattr(sys, "argv", ["assay", "job", str(file), *options])
        with pytest.raises(SystemExit) as ended:
            main()
    assert not ended.value.code
    captured = capsys.readouterr()
    results = JobResults.model_validate_json(captured.out)
    assert JobResults.model_validate_json((tmp_path / "run/job_results.json").read_text(encoding="utf-8")) == results
    assert (results.id, results.benchmark_id, results.model_name) == (job["id"], job["benchmark_id"], "Qwen/Qwen3-8B")
    assert [result.metric_name for result in results.results] == job["parameters"]["metrics"]
    by_name = {result.metric_name: result for result in results.results}
    # The judge takes the first label of each question: yes to every claim, 0 as every rating.
    assert (by_name["faithfulness"].metric_value, by_name["faithfulness"].confidence_interval) == (1.0, None)
    assert by_name["answer_accuracy"].metric_value == 0.0
    assert all(result.num_samples + result.metadata["failed"] == 4 for result in results.results)
    assert (results.num_examples_evaluated, results.evaluation_metadata["bad_rows"]) == (4, 1)
    parts = [r.metric_value if r.metadata["direction"] == "higher" else 1 - r.metric_value for r in results.results]
    counted = results.evaluation_metadata["overall_score_of"]
    assert results.overall_score == pytest.approx(
        sum(part for part, name in zip(parts, by_name, strict=True) if name in counted) / len(counted)
    )
    assert results.evaluation_metadata["primary_score"]["passed"] is True
    assert results.evaluation_metadata["framework_version"] == version()
    assert results.evaluation_metadata["judge"]["model"] == "Qwen/Qwen3-8B"
    assert results.evaluation_metadata["embedder"]["model"] == "embedder"
    rows = [json.loads(line) for line in (tmp_path / "run/results.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["user_input"] for row in rows] == [ROWS[number]["asked"] for number in range(4)]
    assert {body["temperature"] for body in judge.asked} == {0.1, 0.7}


def test_every_field_reaches_the_configuration(data: Path) -> None:
    options = JobOptions("runs/x", "env:KEY", DataFolders(data=data), ("mlflow=http://m:5000", "otlp=http://o:4318"))
    config = build_config(JobSpec.from_content(documented_job()), options)
    assert config.sinks == {"mlflow": "http://m:5000", "otlp": "http://o:4318"}
    judge, embedder = config.judge.server, config.embedder.server
    assert judge is not None
    assert embedder is not None
    assert (judge.urls, judge.model, judge.api_key) == (("http://127.0.0.1:8000/v1",), "Qwen/Qwen3-8B", "env:KEY")
    assert (judge.max_output_tokens, judge.temperature, judge.concurrency) == (512, 0.1, 10)
    assert (embedder.urls, embedder.model, embedder.api_key) == (("http://127.0.0.1:8001/v1",), "BAAI/bge-m3", None)
    assert (config.limit, config.column_map) == (5, {"asked": "user_input", "told": "response"})
    assert (config.source, config.out, config.on_bad_row) == (str(data / "handbook.jsonl"), "runs/x", "skip")


@pytest.mark.parametrize(("number", "limit"), [(0, None), (None, None), (3, 3)])
def test_no_number_of_examples_and_zero_mean_all_rows(data: Path, number: int | None, limit: int | None) -> None:
    job = JobSpec.from_content(minimal() | {"num_examples": number})
    assert build_config(job, JobOptions(folders=DataFolders(data=data))).limit == limit


@pytest.mark.parametrize("benchmark", BENCHMARKS)
def test_a_job_without_metrics_computes_those_of_its_benchmark(benchmark: str, data: Path) -> None:
    job = JobSpec.from_content(minimal() | {"benchmark_id": benchmark})
    requests = build_config(job, JobOptions(folders=DataFolders(data / "none", data))).requests()
    assert requests is not None
    assert tuple(request.key for request in requests) == BENCHMARKS[benchmark]


def test_older_names_of_fields_are_known(data: Path) -> None:
    older = minimal()
    older["benchmark_config"] = older.pop("parameters") | {"scoring_functions": ["nv_accuracy"], "max_workers": 3}
    job = JobSpec.from_content(older | {"timeout_seconds": 60})
    config = build_config(job, JobOptions(folders=DataFolders(data=data)))
    assert job.metrics == ("nv_accuracy",)
    assert config.judge.server is not None
    assert config.judge.server.concurrency == 3
    assert job.unused == ("timeout_seconds",)


def test_the_judges_server_embeds_only_where_vectors_are_compared(data: Path) -> None:
    folders = DataFolders(data=data)
    backends = [
        build_config(JobSpec.from_content(minimal(**parameters)), JobOptions(folders=folders)).embedder.backend
        for parameters in (
            {"metrics": ["faithfulness"]},
            {"metrics": ["answer_relevancy"]},
            {"metrics": ["answer_relevancy"], "embedding_model": "minilm"},
        )
    ]
    assert backends == ["minilm", "server", "minilm"]


def test_data_is_searched_for_in_the_documented_order(tmp_path: Path) -> None:
    folders = DataFolders(tmp_path / "test_data", tmp_path / "data")
    with pytest.raises(SourceError, match="neither"):
        folders.find(None)
    for folder, name in (("data", "b.json"), ("data", "dataset.jsonl"), ("test_data", "z.jsonl")):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / name).touch()
        assert folders.find(None) == tmp_path / folder / name
    (tmp_path / "test_data" / "a.json").touch()
    assert folders.find(None).name == "a.json"
    (tmp_path / "test_data" / "dataset.jsonl").touch()
    assert folders.find(None) == tmp_path / "test_data" / "dataset.jsonl"
    assert folders.find("b.json") == tmp_path / "data" / "b.json"
    assert folders.find(str(tmp_path / "test_data" / "z.jsonl")).name == "z.jsonl"
    with pytest.raises(SourceError, match=r"data_path 'c\.json' does not exist"):
        folders.find("c.json")


def test_unreadable_job_is_refused() -> None:
    cases: list[tuple[Any, str]] = [
        ([], "valid dictionary"),
        ({"benchmark_id": "b"}, r"id: is missing\n  model: is missing"),
        (minimal(metrics=[]), r"parameters\.metrics: .*names no metric"),
        (minimal(metrcs=["a"]), r"parameters\.metrcs: there is no such parameter; there are: metrics$"),
        (minimal(metrics=["a"], scoring_functions=["b"]), "two names of one field; keep metrics"),
        (minimal() | {"benchmark_config": {}}, "two names of one field; keep parameters"),
        (minimal() | {"provider_id": "lm_eval"}, "for the provider 'lm_eval', this is ragas or rag-assay"),
        (minimal() | {"callback_url": "http://me:pw@h"}, "callback_url: .* must hold no password"),
        (minimal() | {"num_examples": -1}, "num_examples: Input should be greater than or equal to 0"),
    ]
    for content, message in cases:
        with pytest.raises(ConfigError, match=message):
            JobSpec.from_content(content)


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (minimal(metrics=["faithfullness"]), UnknownMetricError, "Did you mean faithfulness"),
        (minimal() | {"benchmark_id": "ragas_rag_ful"}, ConfigError, "known are: ragas_rag_full"),
        (minimal() | {"model": {"url": "http://me:pw@h", "name": "m"}}, ConfigError, "must hold no user, password"),
        (
            minimal() | {"model": {"url": "http://h", "name": "m", "auth": {"secret_ref": "judge-key"}}},
            ConfigError,
            "requires the secret 'judge-key', which is in a pod.* --api-key env:NAME",
        ),
    ],
)
def test_job_that_cannot_run_is_refused(
    content: dict[str, Any], error: type[Exception], message: str, data: Path
) -> None:
    with pytest.raises(error, match=message) as caught:
        build_config(JobSpec.from_content(content), JobOptions(folders=DataFolders(data=data)))
    assert "pw" not in str(caught.value)


class Hub(BaseHTTPRequestHandler):
    """An HTTP server in the place of eval-hub."""

    told: ClassVar[list[tuple[str, str | None, dict[str, Any]]]] = []

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.told.append((self.path, self.headers["Authorization"], body["benchmark_status_event"]))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing."""


def test_hub_receives_the_progress_of_a_job(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("pod-token\n", encoding="utf-8")
    hub = HTTPServer(("127.0.0.1", 0), Hub)
    Thread(target=hub.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{hub.server_port}/"
    reporter = HubCallback(JobSpec.from_content(minimal() | {"callback_url": url}), tmp_path)
    with pytest.raises(SourceError), reporter.running():
        raise SourceError("no data")
    done = {"benchmark_id": "b", "benchmark_index": 0, "model_name": "m", "num_examples_evaluated": 1}
    scored = [{"metric_name": "faithfulness", "metric_value": 0.5, "num_samples": 1}]
    times = {"duration_seconds": 1.5, "completed_at": "2026-01-02T03:04:05Z"}
    reporter.report_completed(
        JobResults.model_validate({"id": "1", "results": scored, "overall_score": 0.5, **done, **times})
    )
    hub.shutdown()
    hub.server_close()
    paths, tokens, events = zip(*Hub.told, strict=True)
    assert {*paths} == {"/api/v1/evaluations/jobs/1/events"}
    assert {*tokens} == {"Bearer pod-token"}
    assert [event["status"] for event in events] == ["running", "failed", "completed"]
    assert (events[2]["metrics"], events[2]["overall_score"]) == ({"faithfulness": 0.5}, 0.5)
    assert events[1]["error_message"]["message"] == "no data"
    assert reporter.problems == []


def told_of(callback_url: str, error: Exception, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Return the reports about a job that ends with an error."""
    told: list[dict[str, Any]] = []

    def post(url: str, **more: Any) -> httpx.Response:
        told.append({"url": url, **more["json"]["benchmark_status_event"]})
        return httpx.Response(204, request=httpx.Request("POST", url))

    monkeypatch.setattr(httpx, "post", post)
    reporter = HubCallback(JobSpec.from_content(minimal() | {"id": "a/../b", "callback_url": callback_url}))
    with pytest.raises(type(error)), reporter.running():
        raise error
    return told


def test_hub_receives_only_the_type_of_internal_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    _, failed = told_of("http://hub", ValueError("https://host/?token=geheim"), monkeypatch)
    assert failed["error_message"]["message"] == "ValueError; the job's log has more"
    assert failed["url"] == "http://hub/api/v1/evaluations/jobs/a%2F..%2Fb/events"


def test_hub_receives_the_error_of_a_job_that_cannot_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "job.json"
    file.write_text(json.dumps(minimal(data_path="none.jsonl") | {"callback_url": "http://hub"}), encoding="utf-8")
    told: list[str] = []

    def tell(_: HubCallback, status: str, **__: Any) -> None:
        told.append(status)

    monkeypatch.setattr(HubCallback, "_post", tell)
    monkeypatch.setattr(sys, "argv", ["assay", "job", str(file), "--data", str(tmp_path), "--callback"])
    with pytest.raises(SystemExit):
        main()
    assert told == ["running", "failed"]
    assert "data_path 'none.jsonl' does not exist" in capsys.readouterr().err


def test_hub_receives_a_failure_with_the_partial_results_written(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cells = {
        "a": {"faithfulness": Score.failed("cut off"), "answer_similarity": Score.scored(0.5)},
        "b": {"faithfulness": Score.failed("cut off"), "answer_similarity": Score.scored(1.0)},
    }
    bounds = {"direction": "higher", "bounds": [0, 1]}
    counts = {"bad_row_count": 0, "warnings": []}
    run = write_run(tmp_path / "run", cells, {Stage.SAMPLES: []}, dict.fromkeys(cells["a"], bounds), counts)
    failure = "faithfulness: 2 of 2 cells failed"
    monkeypatch.setattr(job_verb, "_evaluate", lambda *_: Evaluation(str(run), 2, 0, (), (failure,)))
    told: list[tuple[str, Any]] = []
    monkeypatch.setattr(HubCallback, "_post", lambda _, status, **more: told.append((status, more)))
    file = tmp_path / "job.json"
    file.write_text(json.dumps(minimal(metrics=["faithfulness"]) | {"callback_url": "http://hub"}), encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["assay", "job", str(file), "--data", str(data), "--callback"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 8
    assert [state for state, _ in told] == ["running", "failed"]
    assert failure in told[1][1]["error_message"]["message"]
    results = JobResults.model_validate_json((run / "job_results.json").read_text(encoding="utf-8"))
    assert [result.metric_name for result in results.results] == ["answer_similarity"]
    assert JobResults.model_validate_json(capsys.readouterr().out) == results


def test_unreachable_hub_is_a_warning_and_not_a_failure() -> None:
    reporter = HubCallback(JobSpec.from_content(minimal() | {"callback_url": "http://127.0.0.1:9"}))
    with reporter.running():
        pass
    assert reporter.problems == ["cannot report to eval-hub that the job is running (ConnectError)"]


def test_file_without_a_job_is_refused(tmp_path: Path) -> None:
    (tmp_path / "job.json").write_text("{", encoding="utf-8")
    with pytest.raises(ConfigError, match="cannot be read as JSON"):
        JobSpec.from_file(tmp_path / "job.json")
    with pytest.raises(ConfigError, match="EVALHUB_JOB_SPEC_PATH"):
        JobSpec.from_file(tmp_path / "none.json")


def test_a_job_sends_no_more_requests_at_once_than_the_provider_of_eval_hub_may(data: Path) -> None:
    """Its servers were sized for one request at a time, and for ten at most."""
    job = JobSpec.from_content(minimal(metrics=["answer_relevancy"]))
    config = build_config(job, JobOptions(folders=DataFolders(data=data)))
    assert config.judge.server is not None
    assert config.embedder.server is not None
    assert (config.judge.server.concurrency, config.embedder.server.concurrency) == (10, 10)
