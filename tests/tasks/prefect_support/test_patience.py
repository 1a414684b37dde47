"""A Prefect server that goes away in the middle of a run."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import Any

import httpx
import pytest
from prefect import flow
from prefect.client.orchestration import get_client
from prefect.concurrency.services import ConcurrencySlotAcquisitionWithLeaseService
from prefect.concurrency.sync import concurrency
from prefect.flow_engine import run_flow
from prefect.settings import PREFECT_API_URL, PREFECT_CLIENT_MAX_RETRIES, temporary_settings

from deployments.local_server import ServerAddress, use_server
from flows.config.run_config import RunConfig
from flows.evaluate import run_evaluation
from metric_core.errors import JudgeError
from tasks.engine import concurrency_limits
from tasks.prefect_support import patience
from tasks.prefect_support.patience import crash_without_server, is_unavailable, wait_for_server
from tests.flows.test_index_rebuilt import write
from tests.relay import Relay

URL = "http://prefect:4200/api"


def refusal(url: str = f"{URL}/flows") -> httpx.ConnectError:
    return httpx.ConnectError("refused", request=httpx.Request("GET", url))


@pytest.fixture
def relay(prefect_server: str) -> Iterator[Relay]:
    """Yield a relay of the server, which flows of the test use."""
    with Relay(prefect_server) as relay, use_server(ServerAddress(relay.url)):
        yield relay
    # It would go on asking this relay in the next test, since one is kept for each set of limits.
    ConcurrencySlotAcquisitionWithLeaseService.drain_all(timeout=10)


def test_only_errors_of_the_prefect_server_count() -> None:
    with temporary_settings({PREFECT_API_URL: URL}):
        assert is_unavailable(refusal())
        assert not is_unavailable(refusal("http://judge:8000/v1"))
        assert not is_unavailable(httpx.ConnectError("no request"))
        for status, is_away in ((503, True), (409, False), (404, False)):
            response = httpx.Response(status, request=httpx.Request("GET", f"{URL}/flows"))
            assert is_unavailable(httpx.HTTPStatusError("x", request=response.request, response=response)) is is_away
        other = JudgeError("the judge is down")
        other.__cause__ = refusal("http://judge:8000/v1")
        assert not is_unavailable(other)


def test_request_is_repeated_until_the_server_is_back_or_the_time_is_over() -> None:
    replies: list[Any] = [refusal(), refusal(), "at last"]

    def request() -> Any:
        reply = replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply

    with temporary_settings({PREFECT_API_URL: URL}):
        assert wait_for_server(request) == "at last"
        replies[:] = [refusal(), "too late"]
        with pytest.raises(httpx.ConnectError):
            wait_for_server(request, timeout=0)


LONG = pytest.mark.skipif("ASSAY_TEST_CRASHES" not in os.environ, reason="takes a minute: set ASSAY_TEST_CRASHES=1")


@pytest.mark.served
@pytest.mark.prefect
@pytest.mark.models
@pytest.mark.parametrize("seconds", [2, pytest.param(39, marks=LONG)])
def test_run_goes_on_when_the_server_comes_back(
    seconds: int, relay: Relay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    entered: list[str] = []

    @contextmanager
    def leave(names: list[str], **options: Any) -> Iterator[None]:
        with concurrency(names, **options):
            if not entered:  # the slot cannot be given back, and the next one cannot be taken
                relay.stop()
                Timer(seconds, relay.start).start()
            entered.extend(names)
            yield

    monkeypatch.setattr(concurrency_limits, "concurrency", leave)
    judge = {"backend": "builtin", "max_concurrent_stages": 2}
    config = {"source": write(tmp_path / "rows.jsonl"), "metrics": ["faithfulness"], "judge": judge}
    stores = {"tables": str(tmp_path / "tables"), "cache": str(tmp_path / "answers.db")}
    started = time.monotonic()
    with temporary_settings({PREFECT_CLIENT_MAX_RETRIES: 5}):  # Prefect's default, for servers that are not local
        done = run_evaluation(RunConfig.model_validate({**config, **stores}))
    assert time.monotonic() - started > seconds  # a property of the outage, not of the speed
    assert len(entered) >= 2
    assert (Path(done.folder) / "report.html").is_file()


@pytest.mark.prefect
def test_run_of_a_deployment_that_the_server_has_left_has_crashed(
    prefect_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "LONGEST_WAIT", 0.0)

    @flow(name="left")
    @crash_without_server
    def left() -> None:
        wait_for_server(lambda: (_ for _ in ()).throw(refusal(f"{prefect_server}/flows")))

    with pytest.raises(httpx.ConnectError):
        left()
    with get_client(sync_client=True) as client:
        deployment = client.create_deployment(flow_id=client.create_flow(left), name="left")
        run = client.create_flow_run_from_deployment(deployment)
        run_flow(left, flow_run=run, return_type="state")
        state = client.read_flow_run(run.id).state
    assert state is not None
    assert state.is_crashed()
    assert "the run is resumed" in str(state.message)
