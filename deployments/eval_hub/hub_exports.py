"""Send the results of a job to an MLflow experiment and to an OCI registry, if the job names them, by eval-hub's SDK.

The SDK is the extra `eval-hub`. What cannot be sent costs a warning: the results themselves are written and reported.
"""

import logging
import shutil
import tempfile
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from deployments.eval_hub.job_results import JobResults
from deployments.eval_hub.job_spec import JobSpec
from metric_core.parsing.strict_json import parse_json
from tasks.runs.run_folder import REPORT, SUMMARY
from tasks.runtime.atomic_files import write_output

if TYPE_CHECKING:
    from evalhub.adapter.callbacks import DefaultCallbacks

T = TypeVar("T")
_KINDS = {".html": "text/html", ".json": "application/json", ".csv": "text/csv", ".jsonl": "application/x-ndjson"}
_NO_SDK = "the results are not exported: install the extra eval-hub, `pip install 'rag-assay[eval-hub]'`"


def export_results(
    file: Path, job: JobSpec, results: JobResults, folder: Path, rows: Sequence[Path]
) -> tuple[JobResults, list[str]]:
    """Return results that name their MLflow run and their OCI artifact, and messages about what was not sent.

    Args:
        file: File of the job, which the SDK reads too.
        folder: Run folder, whose report and summary are sent with the results.
        rows: Files with the scores per row.
    """
    if not job.exports_anything:
        return results, []
    try:
        from evalhub.adapter.callbacks import DefaultCallbacks  # noqa: PLC0415 the extra eval-hub
        from evalhub.adapter.config import EvalHubMode  # noqa: PLC0415
        from evalhub.adapter.oci import DEFAULT_OCI_PROXY_HOST  # noqa: PLC0415
        from evalhub.adapter.settings import AdapterSettings  # noqa: PLC0415
    except ImportError:
        return results, [_NO_SDK]
    settings = AdapterSettings()
    callbacks = DefaultCallbacks(
        job_id=job.id,
        benchmark_id=job.benchmark_id,
        provider_id=job.provider_id,
        benchmark_index=job.benchmark_index,
        oci_auth_config_path=settings.oci_auth_config_path,
        oci_insecure=settings.oci_insecure,
        oci_proxy_host=DEFAULT_OCI_PROXY_HOST if settings.mode == EvalHubMode.K8S else None,
        mlflow_backend=settings.mlflow_backend,
    )
    problems: list[str] = []
    with tempfile.TemporaryDirectory() as temporary:
        sent = Path(temporary) / "results"
        sent.mkdir()
        for each in (*rows, folder / REPORT, folder / SUMMARY):
            shutil.copy(each, sent)
        write_output(sent / "job_results.json", results.model_dump_json(indent=2), "the results")
        run_id = _try(partial(_to_mlflow, callbacks, file, results, sent), "MLflow", problems)
        artifact = None
        if job.exports is not None and job.exports.oci is not None:
            artifact = _try(partial(_to_registry, callbacks, job.exports.oci, sent), "the OCI registry", problems)
    return results.model_copy(update={"mlflow_run_id": run_id, "oci_artifact": artifact}), problems


def _try(send: Callable[[], T], to: str, problems: list[str]) -> T | None:
    logging.getLogger("evalhub").setLevel(logging.CRITICAL)  # which would print the traceback of each failure
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the SDK's packages
            return send()
    except Exception as error:  # noqa: BLE001 of any client; its message may hold a secret
        cause = error.__cause__ or error
        problems.append(f"the results did not reach {to}: {type(cause).__name__}")
        return None


def _to_mlflow(callbacks: "DefaultCallbacks", file: Path, results: JobResults, sent: Path) -> str | None:
    from evalhub.adapter.mlflow import MlflowFileArtifact  # noqa: PLC0415
    from evalhub.adapter.models import job  # noqa: PLC0415

    artifacts = [MlflowFileArtifact(each.name, each, _KINDS[each.suffix]) for each in sorted(sent.iterdir())]
    own = job.JobResults.model_validate_json(results.model_dump_json())
    given = {name: value for name, value in parse_json(file.read_text(encoding="utf-8")).items() if value is not None}
    spec = job.JobSpec.model_validate({"callback_url": "", "parameters": {}, **given})  # which a job by hand lacks
    return callbacks.mlflow.save(own, spec, artifacts)


def _to_registry(callbacks: "DefaultCallbacks", oci: Any, sent: Path) -> dict[str, str]:
    from evalhub.adapter.models import job  # noqa: PLC0415

    spec = job.OCIArtifactSpec.model_validate({"files_path": sent, "coordinates": oci.coordinates})
    found = callbacks.create_oci_artifact(spec)
    return {"digest": found.digest, "reference": found.reference}
