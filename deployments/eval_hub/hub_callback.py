"""Report the state of a job to eval-hub, at the job's `callback_url`; a failed report does not stop the job."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx

from deployments.eval_hub.job_results import JobResults
from deployments.eval_hub.job_spec import JobSpec
from metric_core.errors import AssayError
from tasks.runtime.proxies import is_loopback

TOKEN = Path("/var/run/secrets/kubernetes.io/serviceaccount/token")
"""File with the token of the pod's service account; it need not exist."""

_SECONDS = 10.0


class HubCallback:
    """A client that posts events about one job.

    Args:
        job: Job to report on.
        token: File with the bearer token; it need not exist.
    """

    def __init__(self, job: JobSpec, token: Path = TOKEN) -> None:
        self._job = job
        self._token = token
        self.problems: list[str] = []
        """Messages about reports that failed."""

    @contextmanager
    def running(self) -> Iterator[None]:
        """Report that the job is running and, if the block fails, that it failed and why."""
        self._post("running", "the evaluation is running")
        try:
            yield
        except BaseException as error:
            # An AssayError is written for users; other messages may contain secrets, so only their type is sent.
            reason = str(error) if isinstance(error, AssayError) else f"{type(error).__name__}; the job's log has more"
            self._post("failed", reason, error_message={"message": reason, "message_code": "evaluation_failed"})
            raise

    def report_completed(self, results: JobResults) -> None:
        """Report that the job is complete, with the value of each metric."""
        self._post(
            "completed",
            "the evaluation is complete",
            metrics={result.metric_name: result.metric_value for result in results.results},
            completed_at=results.completed_at.isoformat(),
            duration_seconds=int(results.duration_seconds),
        )

    def _post(self, state: str, message: str, **more: Any) -> None:
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
                url,
                json={"benchmark_status_event": event},
                headers=self._headers(),
                timeout=_SECONDS,
                trust_env=not is_loopback(url),
            ).raise_for_status()
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            status = error.response.status_code if isinstance(error, httpx.HTTPStatusError) else type(error).__name__
            self.problems.append(f"cannot report to eval-hub that the job is {state} ({status})")

    def _headers(self) -> dict[str, str]:
        try:
            return {"Authorization": f"Bearer {self._token.read_text(encoding='utf-8').strip()}"}
        except OSError:
            return {}
