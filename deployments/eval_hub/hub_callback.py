"""Tells eval-hub how a job is doing, at the job's `callback_url`; a hub that does not listen stops no job."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from deployments.eval_hub.job_results import JobResults
from deployments.eval_hub.job_spec import JobSpec
from metric_core.errors import AssayError

TOKEN = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
"""The token of the pod's service account, where there is one."""

_SECONDS = 10.0


class HubCallback:
    """Posts events about one job.

    Args:
        job: the job.
        token: the file with the token to enter with, if it exists.
    """

    def __init__(self, job: JobSpec, token: Path = TOKEN) -> None:
        self._job = job
        self._token = token
        self.problems: list[str] = []
        """What could not be told, for people."""

    @contextmanager
    def running(self) -> Iterator[None]:
        """Says that the job runs and, should the block fail, that it failed and why."""
        self._tell("running", "the evaluation runs")
        try:
            yield
        except BaseException as error:
            # An error of ours is written for people; of others only the kind is told, for the message leaves the house.
            reason = str(error) if isinstance(error, AssayError) else f"{type(error).__name__}; the job's log has more"
            self._tell("failed", reason, error_message={"message": reason, "message_code": "evaluation_failed"})
            raise

    def completed(self, results: JobResults) -> None:
        """Says that the job is done, with the value of each metric."""
        self._tell(
            "completed",
            "the evaluation is done",
            metrics={result.metric_name: result.metric_value for result in results.results},
            completed_at=results.completed_at.isoformat(),
            duration_seconds=int(results.duration_seconds),
        )

    def _tell(self, state: str, message: str, **more: Any) -> None:
        job = self._job
        if job.callback_url is None:
            return
        event = {
            "id": job.benchmark_id,
            "provider_id": job.provider_id,
            "benchmark_index": job.benchmark_index,
            "state": state,
            "status": state,
            "message": {"message": message, "message_code": f"evaluation_{state}"},
            **more,
        }
        url = f"{job.callback_url.rstrip('/')}/api/v1/evaluations/jobs/{quote(job.id, safe='')}/events"
        try:
            httpx.post(
                url, json={"benchmark_status_event": event}, headers=self._headers(), timeout=_SECONDS
            ).raise_for_status()
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            status = error.response.status_code if isinstance(error, httpx.HTTPStatusError) else type(error).__name__
            self.problems.append(f"eval-hub could not be told that the job is {state} ({status})")

    def _headers(self) -> dict[str, str]:
        try:
            return {"Authorization": f"Bearer {self._token.read_text(encoding='utf-8').strip()}"}
        except OSError:
            return {}
