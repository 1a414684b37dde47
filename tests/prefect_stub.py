"""A stub of the Prefect server in the process of the tests, for tests of what a flow computes.

A real server takes twice as much computing for a run as the run itself. The stub keeps flow runs and their artifacts,
and accepts every state; logs and events are not sent. It refuses all other requests: tests of what a real server does
with a run use the fixture `prefect_server`.
"""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import httpx
import prefect
import pytest
from prefect.client.base import PrefectHttpxAsyncClient, PrefectHttpxSyncClient

from deployments.local_server import ServerAddress, use_server

URL = "http://prefect.stub/api"

Answer = tuple[int, Any]


class PrefectStub:
    """Flow runs with their states and artifacts, as a Prefect server keeps them."""

    def __init__(self) -> None:
        self._runs: dict[str, dict[str, Any]] = {}
        self._states: dict[str, list[dict[str, Any]]] = {}
        self._artifacts: dict[str, dict[str, Any]] = {}
        self._routes: tuple[tuple[str, Callable[..., Answer]], ...] = (
            (r"GET /admin/version", lambda _: (200, prefect.__version__)),
            (r"GET /csrf-token", lambda _: (404, None)),  # as a server without such tokens
            (r"GET /admin/storage", lambda _: (404, None)),
            (r"POST /flows/", lambda content: (201, {"id": str(uuid4()), **content})),
            (r"POST /flow_runs/", self._create_run),
            (r"POST /flow_runs/filter", lambda _: (200, [])),
            (r"GET /flow_runs/([^/]+)", self._read_run),
            (r"PATCH /flow_runs/([^/]+)", self._change_run),
            (r"POST /flow_runs/([^/]+)/set_state", self._set_state),
            (r"PATCH /flow_runs/[^/]+/labels", lambda _: (204, None)),
            (r"GET /flow_run_states/", self._read_states),
            (r"POST /events", lambda _: (204, None)),
            (r"POST /logs/", lambda _: (201, None)),  # the last ones of a flow that a real server ran before
            (r"POST /task_runs/", self._create_task_run),
            (r"POST /artifacts/", self._create_artifact),
            (r"PATCH /artifacts/([^/]+)", self._change_artifact),
            (r"POST /artifacts/filter", self._find_artifacts),
        )

    def answer(self, request: httpx.Request) -> httpx.Response:
        """Return the response to a request."""
        place = f"{request.method} {request.url.path.removeprefix('/api')}"
        for pattern, reply in self._routes:
            if (found := re.fullmatch(pattern, place)) is not None:
                content = json.loads(request.content) if request.content else dict(request.url.params)
                status, body = reply(*found.groups(), content)
                return httpx.Response(status, content=b"" if body is None else json.dumps(body), request=request)
        return httpx.Response(501, text=f"the stub of the Prefect server does not know {place}", request=request)

    async def answer_later(self, request: httpx.Request) -> httpx.Response:
        """Return the response to a request of an asynchronous client."""
        return self.answer(request)

    def _create_run(self, content: dict[str, Any]) -> Answer:
        own = {"id": str(uuid4()), "name": content.get("name") or "stub", "created": _now()}
        run = {**content, **own, "expected_start_time": own["created"]}
        self._runs[run["id"]] = run
        self._enter(run, content["state"])
        return 201, run

    def _create_task_run(self, content: dict[str, Any]) -> Answer:
        run = {**content, "id": str(uuid4())}
        self._enter(run, content["state"])
        return 201, run

    def _read_run(self, run_id: str, _content: Any) -> Answer:
        return (200, self._runs[run_id]) if run_id in self._runs else (404, {})

    def _read_states(self, content: dict[str, Any]) -> Answer:
        return 200, self._states[content["flow_run_id"]]

    def _change_run(self, run_id: str, content: dict[str, Any]) -> Answer:
        self._runs[run_id] |= content
        return 204, None

    def _set_state(self, run_id: str, content: dict[str, Any]) -> Answer:
        state = self._enter(self._runs[run_id], content["state"])
        return 201, {"state": state, "status": "ACCEPT", "details": {"type": "accept_details"}}

    def _create_artifact(self, content: dict[str, Any]) -> Answer:
        made = {"id": str(uuid4()), **content}
        self._artifacts[made["id"]] = made
        return 201, made

    def _change_artifact(self, artifact_id: str, content: dict[str, Any]) -> Answer:
        self._artifacts[artifact_id] |= content
        return 204, None

    def _find_artifacts(self, content: dict[str, Any]) -> Answer:
        wanted = content["artifacts"]["flow_run_id"]["any_"]
        return 200, [each for each in self._artifacts.values() if each["flow_run_id"] in wanted]

    def _enter(self, run: dict[str, Any], state: dict[str, Any]) -> dict[str, Any]:
        entered = {"id": str(uuid4()), "timestamp": _now(), **state}
        self._states.setdefault(run["id"], []).append(entered)
        run |= {
            "state": entered,
            "state_id": entered["id"],
            "state_type": entered["type"],
            "state_name": entered["name"],
            "run_count": run.get("run_count", 0) + (entered["type"] == "RUNNING"),
        }
        return entered


def _now() -> str:
    return datetime.now(UTC).isoformat()


@contextmanager
def use_stub() -> Iterator[PrefectStub]:
    """Let Prefect's clients in this process talk to a stub."""
    stub = PrefectStub()
    transport = httpx.MockTransport(stub.answer)
    later = httpx.MockTransport(stub.answer_later)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PrefectHttpxSyncClient, "_transport_for_url", lambda _client, _url: transport)
        patch.setattr(PrefectHttpxAsyncClient, "_transport_for_url", lambda _client, _url: later)
        patch.setattr("prefect.events.utilities.should_emit_events", lambda: False)
        patch.setenv("PREFECT_LOGGING_TO_API_ENABLED", "false")
        with use_server(ServerAddress(URL, "stub:stub")):
            yield stub
