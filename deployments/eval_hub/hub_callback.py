"""Report the state of a job to eval-hub, at the job's `callback_url`; a failed report does not stop the job."""

import os
import ssl
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
from tasks.runtime.trust import trusted_certificates

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Folder of the pod's service account, which has its token, namespace and certificates; it need not exist."""
SERVICE_CERTIFICATES = Path("/etc/pki/ca-trust/source/anchors/service-ca.crt")
"""Certificates of the services of OpenShift; the file need not exist."""

_SECONDS = 10.0


class HubCallback:
    """A client that posts events about one job.

    Args:
        account: Folder of the pod's service account.
    """

    def __init__(self, job: JobSpec, account: Path = ACCOUNT) -> None:
        self._job = job
        self._account = account
        self.problems: list[str] = []
        """Messages about reports that failed."""

    @contextmanager
    def running(self) -> Iterator[None]:
        """Report that the job is running and, if the block fails, that it failed and why."""
        self._post("running", phase="running_evaluation")
        try:
            yield
        except BaseException as error:
            # An AssayError is written for users; other messages may contain secrets, so only their type is sent.
            reason = str(error) if isinstance(error, AssayError) else f"{type(error).__name__}; the job's log has more"
            message = {"message": reason, "message_code": "evaluation_failed", "message_origin": "adapter"}
            self._post("failed", error_message=message)
            raise

    def report_completed(self, results: JobResults) -> None:
        """Report that the job is complete, with the value of each metric and the overall score."""
        overall = {} if results.overall_score is None else {"overall_score": results.overall_score}
        self._post(
            "completed",
            metrics={result.metric_name: result.metric_value for result in results.results},
            completed_at=results.completed_at.isoformat(),
            **overall,
        )

    def _post(self, status: str, **more: Any) -> None:
        job = self._job
        if job.callback_url is None:
            return
        event = {
            "id": job.benchmark_id,
            "provider_id": job.provider_id,
            "benchmark_index": job.benchmark_index,
            "status": status,
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
                verify=self._trusted(),
            ).raise_for_status()
        except (httpx.HTTPError, httpx.InvalidURL, OSError) as error:
            what = error.response.status_code if isinstance(error, httpx.HTTPStatusError) else type(error).__name__
            self.problems.append(f"cannot report to eval-hub that the job is {status} ({what})")

    def _headers(self) -> dict[str, str]:
        """Return the token and the namespace of the pod; both change while a job runs, or are missing."""
        token = self._read(Path(os.environ.get("EVALHUB_AUTH_TOKEN_PATH") or self._account / "token"))
        namespace = self._read(self._account / "namespace")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        return {**headers, "X-Tenant": namespace} if namespace else headers

    def _trusted(self) -> ssl.SSLContext:
        """Return the certificates that eval-hub's is checked against."""
        named = os.environ.get("EVALHUB_CA_BUNDLE_PATH")
        usual = (SERVICE_CERTIFICATES, self._account / "service-ca.crt", self._account / "ca.crt")
        files = [Path(named)] if named else [file for file in usual if file.exists()]
        return ssl.create_default_context(cafile=files[0]) if files else trusted_certificates()

    @staticmethod
    def _read(file: Path) -> str:
        try:
            return file.read_text(encoding="utf-8-sig").strip()
        except OSError:
            return ""
