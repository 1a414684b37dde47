"""Results of jobs reach the MLflow experiment and the OCI registry that a job names, or a warning says that not."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from deployments.eval_hub.hub_exports import export_results
from deployments.eval_hub.job_spec import JobSpec
from tests.deployments.eval_hub.test_sdk import results_of, spec
from tests.loopback_server import LoopbackServer, QuietHandler


class Places(LoopbackServer):
    """A registry that keeps blobs and manifests, and an MLflow that keeps runs and artifacts."""

    def __init__(self) -> None:  # noqa: C901 a method for each verb of HTTP
        self.blobs: dict[str, bytes] = {}
        self.manifests: dict[str, bytes] = {}
        self.artifacts: dict[str, bytes] = {}
        self.batches: list[Any] = []
        places = self

        class Handler(QuietHandler):
            def do_HEAD(self) -> None:
                self.send(404)

            def do_GET(self) -> None:
                if "experiments/get-by-name" in self.path:
                    self._json({"experiment": {"experiment_id": "7", "name": "nightly", "lifecycle_stage": "active"}})
                elif "runs/get" in self.path:
                    self._json({"run": {"info": RUN}})
                else:
                    self.send(200)

            def do_POST(self) -> None:
                if self.path.endswith("/blobs/uploads/"):
                    self.send(202, headers={"Location": f"{self.path}1"})
                    return
                content = json.loads(self.read_body())
                if self.path.endswith("log-batch"):
                    places.batches.append(content)
                self._json({"run": {"info": RUN}, "run_info": RUN})

            def do_PUT(self) -> None:
                body, path = self.read_body(), urlsplit(self.path)
                digest = f"sha256:{hashlib.sha256(body).hexdigest()}"
                if "/manifests/" in path.path:
                    places.manifests[path.path.rpartition("/")[2]] = body
                elif "mlflow-artifacts" in path.path:
                    places.artifacts[path.path.rpartition("/")[2]] = body
                else:
                    places.blobs[digest] = body
                self.send(201, headers={"Docker-Content-Digest": digest})

            def _json(self, content: Any) -> None:
                self.send(200, json.dumps(content).encode(), "application/json")

        super().__init__(Handler)


RUN = {
    "run_id": "r1",
    "run_uuid": "r1",
    "experiment_id": "7",
    "status": "RUNNING",
    "artifact_uri": "mlflow-artifacts:/7/r1/artifacts",
}


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> Iterator[Places]:
    with Places() as running:
        monkeypatch.setenv("MLFLOW_TRACKING_URI", running.origin)
        monkeypatch.setenv("EVALHUB_MODE", "local")
        monkeypatch.setenv("OCI_INSECURE", "true")
        yield running


def export(folder: Path, host: str, **changes: Any) -> tuple[Any, list[str]]:
    coordinates = {"oci_host": host, "oci_repository": "team/nights", "oci_tag": "n1"}
    content = spec(exports={"oci": {"coordinates": coordinates}})
    file = folder / "job.json"
    file.write_text(json.dumps({**content, **changes}), encoding="utf-8")
    job = JobSpec.from_file(file)
    results = results_of(job, folder / "run")
    for name in ("report.html", "summary.json", "results.csv"):
        (folder / "run" / name).write_text(name, encoding="utf-8")
    return export_results(file, job, results, folder / "run", [folder / "run" / "results.csv"])


def test_results_reach_both_places(places: Places, tmp_path: Path) -> None:
    host = urlsplit(places.origin).netloc
    results, problems = export(tmp_path, host)
    assert problems == []
    digest = f"sha256:{hashlib.sha256(places.manifests['n1']).hexdigest()}"
    assert results.oci_artifact == {"digest": digest, "reference": f"{host}/team/nights:n1@{digest}"}
    manifest = json.loads(places.manifests["n1"])
    assert manifest["annotations"]["io.github.eval-hub.job_id"] == "j"
    layers = {each["digest"] for each in manifest["layers"]}
    assert layers <= {*places.blobs}
    assert results.mlflow_run_id == "r1"
    assert {*places.artifacts} == {"report.html", "summary.json", "results.csv", "job_results.json"}
    values = {each["key"]: each["value"] for each in places.batches[0]["metrics"]}
    assert values == {"faithfulness": 0.25, "answer_similarity": 0.75, "overall_score": 0.75}


def test_a_job_that_was_written_by_hand_is_exported(places: Places, tmp_path: Path) -> None:
    results, problems = export(tmp_path, urlsplit(places.origin).netloc, callback_url=None)
    assert (results.mlflow_run_id, problems) == ("r1", [])


def test_what_cannot_be_sent_costs_a_warning(places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    results, problems = export(tmp_path, urlsplit(places.origin).netloc)
    assert problems == ["the results did not reach MLflow: ConnectError"]
    assert results.mlflow_run_id is None
    assert results.oci_artifact is not None


def test_a_job_without_places_sends_nothing(places: Places, tmp_path: Path) -> None:
    results, problems = export(tmp_path, "nowhere", exports=None, experiment_name=None)
    assert (results.oci_artifact, results.mlflow_run_id, problems) == (None, None, [])
    assert (places.batches, places.manifests) == ([], {})
