"""A server with the part of MLflow's REST API that results are sent by."""

import json
import re
import uuid
from collections import defaultdict
from http.server import BaseHTTPRequestHandler
from typing import Any, TypeAlias
from urllib.parse import parse_qs, urlsplit

from tests.loopback_server import LoopbackServer, QuietHandler

Reply: TypeAlias = tuple[int, dict[str, Any]]

MISSING: Reply = (404, {"error_code": "RESOURCE_DOES_NOT_EXIST", "message": "it is not there"})
_TRACES = re.compile(r"/api/3\.0/mlflow/traces/([^/]+)(/assessments)?")
_FILES = "/api/2.0/mlflow-artifacts/artifacts/"


class FakeMlflow(LoopbackServer):
    """A server that serves while its context is entered.

    Args:
        *traces: Ids of the traces that it has.
        dies_after: Number of requests that change something after which it refuses more.
    """

    def __init__(self, *traces: str, dies_after: int | None = None) -> None:
        self.experiments: list[str] = []
        self.runs: list[dict[str, Any]] = []
        self.assessments: dict[str, list[dict[str, Any]]] = {trace: [] for trace in traces}
        self.files: dict[str, bytes] = {}
        self.changes: dict[str, int] = defaultdict(int)
        self.linked: list[str] = []
        self.dies_after = dies_after
        server = self

        class Handler(QuietHandler):
            def do_GET(self) -> None:
                address = urlsplit(self.path)
                self._reply(server.read(address.path, {key: each[0] for key, each in parse_qs(address.query).items()}))

            def do_POST(self) -> None:
                content = json.loads(self.read_body())
                self._reply(server.change(self.path, content))

            def do_PUT(self) -> None:
                server.files[self.path.removeprefix(_FILES).rpartition("/")[2]] = self.read_body()
                self._reply((200, {}))

            def _reply(self, reply: Reply) -> None:
                self.send(reply[0], json.dumps(reply[1]).encode(), "application/json")

        handler: type[BaseHTTPRequestHandler] = Handler
        super().__init__(handler)

    def read(self, path: str, query: dict[str, str]) -> Reply:
        if found := _TRACES.fullmatch(path):
            trace = found[1]
            info = {"trace_id": trace, "state": "OK", "assessments": self.assessments.get(trace)}
            return (200, {"trace": {"trace_info": info}}) if trace in self.assessments else MISSING
        if path.endswith("experiments/get-by-name"):
            name = query["experiment_name"]
            number = str(self.experiments.index(name)) if name in self.experiments else None
            return MISSING if number is None else (200, {"experiment": {"experiment_id": number, "name": name}})
        return 200, {"run": self._run(query["run_id"])}

    def change(self, path: str, content: dict[str, Any]) -> Reply:
        if path.endswith("runs/search"):
            run_id = content["filter"].rpartition("= ")[2].strip("'")
            tag = {"key": "rag_assay.run_id", "value": run_id}
            return 200, {"runs": [run for run in self.runs if tag in run["data"]["tags"]]}
        if self.dies_after is not None and sum(self.changes.values()) >= self.dies_after:
            return 503, {"error_code": "TEMPORARILY_UNAVAILABLE", "message": "it is going down"}
        if found := _TRACES.fullmatch(path):
            self.changes["assessments"] += 1
            self.assessments[found[1]].append(content["assessment"])
            return 200, {"assessment": content["assessment"]}
        verb = path.rpartition("mlflow/")[2]
        self.changes[verb] += 1
        return 200, self._write(verb, content)

    def _write(self, verb: str, content: dict[str, Any]) -> dict[str, Any]:
        if verb == "experiments/create":
            self.experiments.append(content["name"])
            return {"experiment_id": str(len(self.experiments) - 1)}
        if verb == "runs/create":
            run_id = uuid.uuid4().hex  # the client keeps places by it, whatever the server
            places = {"artifact_uri": f"mlflow-artifacts:/{run_id}", "lifecycle_stage": "active", "status": "RUNNING"}
            info = {"run_id": run_id, "run_name": content["run_name"], "experiment_id": "0", **places}
            self.runs.append({"info": info, "data": {"tags": content["tags"], "metrics": [], "params": []}})
            return {"run": self.runs[-1]}
        if verb.startswith("traces/link"):
            self.linked += [trace for trace in content["trace_ids"] if trace not in self.linked]
            return {}
        run = self._run(content["run_id"])
        if verb == "runs/update":
            run["info"]["status"] = content["status"]
            return {"run_info": run["info"]}
        for kind in ("metrics", "params", "tags"):
            run["data"][kind] += [each for each in content.get(kind, ()) if each not in run["data"][kind]]
        return {}

    def _run(self, run_id: str) -> dict[str, Any]:
        return next(run for run in self.runs if run["info"]["run_id"] == run_id)

    @property
    def run_id(self) -> str:
        """The id of the only run."""
        (run,) = self.runs
        return str(run["info"]["run_id"])

    def values(self, kind: str) -> dict[str, Any]:
        """Return the metrics, parameters or tags of the only run."""
        (run,) = self.runs
        return {each["key"]: each["value"] for each in run["data"][kind]}
