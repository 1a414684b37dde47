"""Find the API keys of a job's servers where eval-hub puts them: mounted secrets, the job, the environment.

A key is sent to the server that it is for, and to no other: if the judge is another server than the model's, it does
not get the model's key. Keys are held in the environment of this process; configurations, runs and messages have only
the names of the variables.
"""

import os
from collections.abc import Collection
from pathlib import Path
from urllib.parse import urlsplit

from deployments.eval_hub.job_spec import JobSpec
from metric_core.errors import ConfigError

MOUNT = Path("/var/run/secrets/model")
"""Folder of the model's secret in a pod."""
KEY_FILE = "api-key"
"""File with the key in the folder of a secret."""
MODEL_KEY, JUDGE_KEY = "ASSAY_JOB_MODEL_KEY", "ASSAY_JOB_JUDGE_KEY"
"""Variables that hold the keys."""
OPENAI_KEY = "OPENAI_API_KEY"

_ADVICE = "; or name the judge's key with --api-key env:NAME"


def mode() -> str:
    """Return the mode in which eval-hub runs the job, `k8s` or `local`; empty if eval-hub does not run it."""
    return os.environ.get("EVALHUB_MODE", "").strip().lower()


def locate_keys(job: JobSpec, urls: Collection[str], api_key: str | None) -> dict[str, str]:
    """Return a mapping from the URLs of servers to the locations of their keys; servers without a key are absent.

    Args:
        urls: URLs of the servers that the job uses.
        api_key: Location of the judge's key on the command line; None means that of the job or the environment.

    Raises:
        ConfigError: A secret that the job names cannot be read.
    """
    model, judge, own = job.model.endpoint, job.judge_endpoint, job.parameters.judge_api_key
    keys: dict[str, str] = {}
    if api_key is not None:
        keys[judge] = api_key
    elif own is not None:
        keys[judge] = _hold(JUDGE_KEY, own.get_secret_value())
    if model in urls and model not in keys and (key := _read_model_key(job)) is not None:
        keys[model] = _hold(MODEL_KEY, key)
    if judge not in keys and judge != model and os.environ.get(OPENAI_KEY):
        keys[judge] = f"env:{OPENAI_KEY}"
    return keys


def _hold(variable: str, key: str) -> str:
    os.environ[variable] = key
    return f"env:{variable}"


def _read_model_key(job: JobSpec) -> str | None:
    """Return the key of the model; None if the job names no secret, and none is mounted."""
    if job.model.auth is None and mode() != "k8s":
        return None
    secret = None if job.model.auth is None else job.model.auth.secret_ref
    folder = MOUNT if mode() == "k8s" else _local_folder(str(secret))
    file = folder / KEY_FILE
    try:
        if folder.resolve() not in file.resolve().parents:
            raise ConfigError(f"{file} is a link out of its folder; put the key into the folder{_ADVICE}")
        key = file.read_text(encoding="utf-8-sig").strip()
    except (OSError, UnicodeDecodeError):
        key = ""
    if not key and secret is not None:
        raise ConfigError(
            f"the job's model requires the secret {secret!r}, and {file} holds no key; mount the secret there{_ADVICE}"
        )
    return key or None


def _local_folder(secret: str) -> Path:
    parts = urlsplit(secret)
    if parts.scheme != "file" or parts.netloc or not parts.path:
        raise ConfigError(
            f"the job's model requires the secret {secret!r}, which is in a pod, where EVALHUB_MODE is k8s. Elsewhere "
            f"secret_ref is the file URL of a folder with the file {KEY_FILE}{_ADVICE}"
        )
    return Path(parts.path)
