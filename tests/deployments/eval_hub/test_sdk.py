"""Jobs, results, events and keys as the SDK of eval-hub reads and writes them."""

import json
import ssl
import warnings
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from deployments.eval_hub import job_keys
from deployments.eval_hub.hub_callback import HubCallback
from deployments.eval_hub.job_config import DataFolders, JobOptions, build_config
from deployments.eval_hub.job_results import build_results
from deployments.eval_hub.job_spec import JobParameters, JobSpec
from flows.config.run_config import RunConfig
from metric_core.errors import ConfigError
from metric_core.records import Score
from metric_core.stages import Stage
from tasks.runtime.trust import trusted_certificates
from tests.deployments.eval_hub.test_job_spec import documented_job
from tests.tasks.reports.folders import write_run

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # a package of the SDK has settings of an older pydantic
    from evalhub import adapter as sdk
    from evalhub.adapter.auth import resolve_model_credentials

PARAMETERS = {
    "metrics": ["faithfulness", "answer_similarity"],
    "embedding_model": "BAAI/bge-m3",
    "embedding_url": "http://embedder:8001",
    "judge_model": "Qwen/Qwen3-32B",
    "judge_url": "http://judge:8002/v1",
    "judge_api_key": "geheim-judge",
    "max_tokens": 512,
    "temperature": 0.1,
    "column_map": {"asked": "user_input"},
    "max_workers": 4,
    "data_path": "rows.jsonl",
}
"""The parameters of eval-hub's Ragas provider."""


def spec(**changes: Any) -> dict[str, Any]:
    """Return a job with all fields, as the SDK writes it."""
    job = {
        "id": "j",
        "provider_id": "ragas",
        "benchmark_id": "ragas_rag_default",
        "benchmark_index": 2,
        "model": {"url": "http://model:8000", "name": "under/test"},
        "parameters": PARAMETERS,
        "callback_url": "http://localhost:8080",
        "primary_score": {"metric": "answer_similarity", "lower_is_better": False},
        "exports": {"oci": {"coordinates": {"oci_host": "quay.io", "oci_repository": "a/b"}}},
        "experiment_name": "nightly",
        "tags": [{"key": "team", "value": "search"}],
    }
    return dict(sdk.JobSpec(**{**job, **changes}).model_dump(mode="json"))


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DataFolders:
    for variable in ("EVALHUB_MODE", "OPENAI_API_KEY", job_keys.MODEL_KEY, job_keys.JUDGE_KEY):
        monkeypatch.setenv(variable, "")
    (tmp_path / "rows.jsonl").write_text('{"asked": "a"}\n', encoding="utf-8")
    return DataFolders(data=tmp_path)


def servers_of(config: RunConfig) -> list[tuple[str, str | None, str | None]]:
    """Return URL, model and key of the judge and of the embedder."""
    servers = (config.judge.server, config.embedder.server)
    return [(server.urls[0], server.model, server.read_key()) for server in servers if server is not None]


def test_the_documented_job_is_a_job_of_the_sdk() -> None:
    job = documented_job()
    assert sdk.JobSpec(**job).model_dump(exclude_unset=True) == job
    assert {*JobParameters.model_fields} == {*PARAMETERS}


def test_a_judge_of_its_own_is_asked_instead_of_the_model(data: DataFolders) -> None:
    job = JobSpec.from_content(spec())
    config = build_config(job, JobOptions(folders=data))
    assert servers_of(config) == [
        ("http://judge:8002/v1", "Qwen/Qwen3-32B", "geheim-judge"),
        ("http://embedder:8001/v1", "BAAI/bge-m3", None),
    ]
    assert "geheim" not in config.model_dump_json() + repr(config) + repr(job) + job.model_dump_json()
    assert job.unused == ()


def test_the_model_is_judge_and_embedder_unless_the_job_names_others(data: DataFolders) -> None:
    plain = spec(parameters={"metrics": PARAMETERS["metrics"], "data_path": "rows.jsonl", "judge_model": None})
    server = ("http://model:8000/v1", "under/test", None)
    assert servers_of(build_config(JobSpec.from_content(plain), JobOptions(folders=data))) == [server, server]


def test_a_job_without_a_model_s_endpoint_needs_a_judge_s(data: DataFolders) -> None:
    parameters = {"metrics": ["faithfulness"], "data_path": "rows.jsonl"}
    model = {"url": "", "name": "recorded"}
    with pytest.raises(ConfigError, match=r"need a server, and names none; set model\.url, or parameters\.judge_url"):
        build_config(JobSpec.from_content(spec(model=model, parameters=parameters)), JobOptions(folders=data))
    judged = spec(model=model, parameters={**parameters, "judge_url": "http://judge", "judge_model": "m"})
    assert servers_of(build_config(JobSpec.from_content(judged), JobOptions(folders=data))) == [
        ("http://judge/v1", "m", None)
    ]
    counted = spec(model=model, parameters={**parameters, "metrics": ["string_similarity"]})
    assert build_config(JobSpec.from_content(counted), JobOptions(folders=data)).judge.server is None


@pytest.mark.parametrize("mode", ["local", " K8S "])
def test_the_key_of_a_secret_is_where_the_sdk_reads_it(
    mode: str, data: DataFolders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "secret"
    (secret / "..data").mkdir(parents=True)
    (secret / "..data" / "api-key").write_text("geheim-model\n", encoding="utf-8")
    (secret / "api-key").symlink_to("..data/api-key")
    auth = {"secret_ref": secret.as_uri() if mode == "local" else "model-secret"}
    parameters = {"metrics": ["faithfulness", "answer_similarity"], "data_path": "rows.jsonl"}
    job = spec(model={"url": "http://model:8000", "name": "m", "auth": auth}, parameters=parameters)
    file = tmp_path / "job.json"
    file.write_text(json.dumps(job), encoding="utf-8")
    monkeypatch.setenv("EVALHUB_MODE", mode)
    monkeypatch.setenv("EVALHUB_JOB_SPEC_PATH", str(file))
    monkeypatch.setattr(job_keys, "MOUNT", secret)
    monkeypatch.setattr("evalhub.adapter.auth._MODEL_AUTH_DIR", secret)
    config = build_config(JobSpec.from_file(file), JobOptions(folders=data))
    assert [key for *_, key in servers_of(config)] == [resolve_model_credentials().api_key] * 2 == ["geheim-model"] * 2
    monkeypatch.setenv("MINE", "geheim-mine")
    mine = build_config(JobSpec.from_file(file), JobOptions(api_key="env:MINE", folders=data))
    assert [key for *_, key in servers_of(mine)] == ["geheim-mine"] * 2
    (secret / "..data" / "api-key").unlink()
    with pytest.raises(ConfigError, match=r"requires the secret .* holds no key; .*--api-key env:NAME"):
        build_config(JobSpec.from_file(file), JobOptions(folders=data))
    (tmp_path / "elsewhere").write_text("geheim", encoding="utf-8")
    (secret / "..data" / "api-key").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ConfigError, match="is a link out of its folder"):
        build_config(JobSpec.from_file(file), JobOptions(folders=data))


def test_another_judge_does_not_get_the_key_of_the_model(
    data: DataFolders, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "api-key").write_text("geheim-model", encoding="utf-8")
    model = {"url": "http://model:8000", "name": "m", "auth": {"secret_ref": tmp_path.as_uri()}}
    parameters = {"metrics": ["answer_correctness"], "data_path": "rows.jsonl", "judge_url": "http://judge"}
    job = JobSpec.from_content(spec(model=model, parameters=parameters))
    assert [key for *_, key in servers_of(build_config(job, JobOptions(folders=data)))] == [None, "geheim-model"]
    monkeypatch.setenv("OPENAI_API_KEY", "geheim-openai")
    found = servers_of(build_config(job, JobOptions(folders=data)))
    assert [key for *_, key in found] == ["geheim-openai", "geheim-model"]


def results_of(job: JobSpec, folder: Path) -> Any:
    cells = {
        name: {"faithfulness": Score.scored(0.25), "answer_similarity": Score.scored(value)}
        for name, value in (("a", 0.5), ("b", 1.0))
    }
    metrics = {name: {"direction": "higher", "bounds": [0, 1]} for name in cells["a"]}
    run = write_run(folder, cells, {Stage.SAMPLES: []}, metrics, {"bad_row_count": 0, "warnings": []})
    return build_results(job, run, 1.5)


def test_results_are_those_of_the_sdk_with_the_primary_score_as_overall_score(tmp_path: Path) -> None:
    results = results_of(JobSpec.from_content(spec()), tmp_path / "run")
    read = sdk.JobResults.model_validate_json(results.model_dump_json())
    written = json.loads(results.model_dump_json())
    assert {name: value for name, value in json.loads(read.model_dump_json()).items() if name in written} == written
    assert (read.overall_score, read.model_name, read.benchmark_index) == (0.75, "under/test", 2)
    assert read.evaluation_metadata["primary_score"] == {
        "metric": "answer_similarity",
        "value": 0.75,
        "lower_is_better": False,
    }
    plain = results_of(JobSpec.from_content(spec(primary_score=None)), tmp_path / "plain")
    assert plain.overall_score == 0.5
    assert plain.evaluation_metadata["primary_score"]["passed"] is False
    absent = spec(primary_score={"metric": "context_recall"})
    assert results_of(JobSpec.from_content(absent), tmp_path / "absent").overall_score is None


@pytest.fixture
def hub() -> Iterator[tuple[str, list[tuple[str, dict[str, str], dict[str, Any]]]]]:
    """A server in the place of eval-hub's, and what it was sent: path, headers, event."""
    sent: list[tuple[str, dict[str, str], dict[str, Any]]] = []

    class Hub(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            headers = {name: self.headers[name] for name in ("Authorization", "X-Tenant")}
            sent.append((self.path, headers, body["benchmark_status_event"]))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = HTTPServer(("127.0.0.1", 0), Hub)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", sent
    server.shutdown()
    server.server_close()


@pytest.mark.filterwarnings("ignore:deprecated:DeprecationWarning")  # the SDK reads its deprecated fields
def test_events_are_those_that_the_sdk_sends(
    hub: tuple[str, list[tuple[str, dict[str, str], dict[str, Any]]]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, sent = hub
    (tmp_path / "token").write_text("pod-token\n", encoding="utf-8")
    (tmp_path / "namespace").write_text("tenant\n", encoding="utf-8")
    monkeypatch.setattr(sdk.DefaultCallbacks, "_resolve_namespace", staticmethod(lambda: "tenant"))
    job = JobSpec.from_content(spec(callback_url=url))
    results = results_of(job, tmp_path / "run")
    ours = HubCallback(job, tmp_path)
    with pytest.raises(ConfigError), ours.running():
        raise ConfigError("no data")
    ours.report_completed(results)
    assert ours.problems == []
    theirs = sdk.DefaultCallbacks(
        job_id="j",
        benchmark_id="ragas_rag_default",
        provider_id="ragas",
        benchmark_index=2,
        sidecar_url=url,
        auth_token="pod-token",
    )
    running, failed = sdk.JobStatus.RUNNING, sdk.JobStatus.FAILED
    theirs.report_status(sdk.JobStatusUpdate(status=running, phase=sdk.JobPhase.RUNNING_EVALUATION))
    error = sdk.MessageInfo(message="no data", message_code="evaluation_failed")
    theirs.report_status(sdk.JobStatusUpdate(status=failed, error_message=error))
    theirs.report_results(sdk.JobResults.model_validate_json(results.model_dump_json()))
    assert len(sent) == 6
    for (path, headers, event), (sdk_path, sdk_headers, sdk_event) in zip(sent[:3], sent[3:], strict=True):
        sdk_event.pop("artifacts", None)  # a description of the machine
        assert (path, headers) == (sdk_path, sdk_headers)
        if "completed_at" in event:
            times = (event.pop("completed_at"), sdk_event.pop("completed_at"))
            assert times[0] == times[1]
        assert event == sdk_event


def test_certificates_are_those_of_the_pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reporter = HubCallback(JobSpec.from_content(spec(callback_url="https://127.0.0.1:9")), tmp_path)
    assert reporter._trusted() is trusted_certificates()
    asked: list[str] = []
    monkeypatch.setattr(ssl, "create_default_context", lambda cafile: asked.append(str(cafile)))
    (tmp_path / "ca.crt").touch()
    reporter._trusted()
    monkeypatch.setenv("EVALHUB_CA_BUNDLE_PATH", str(tmp_path / "mine.crt"))
    reporter._trusted()
    assert asked == [str(tmp_path / "ca.crt"), str(tmp_path / "mine.crt")]
