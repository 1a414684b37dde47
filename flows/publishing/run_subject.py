"""Name runs and their artifacts after what they evaluate: deployment, index and version."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

from prefect.context import FlowRunContext
from prefect.runtime import deployment, flow_run

from tasks.history.run_entry import evaluation_name
from tasks.record.run_record import DeploymentRecord

_LONGEST = 80
_NOT_IN_KEYS = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True, slots=True)
class RunSubject:
    """The subject of a run: a version of an index, evaluated by a deployment.

    Args:
        name: Name of the deployment of the run; empty for a run that was started manually.
        index: Id of the index; empty if the run is not about one.
    """

    name: str = ""
    index: str = ""
    version: str = ""

    @classmethod
    def of_run(cls, index: str = "", version: str = "") -> "RunSubject":
        """Return the subject of the current flow run."""
        return cls(_deployment_name(), index, version)

    @classmethod
    def of_record(cls, deployment: DeploymentRecord | None) -> "RunSubject":
        """Return the subject of a finished run."""
        return cls() if deployment is None else cls(deployment.name, deployment.index, deployment.version)

    @property
    def entry(self) -> DeploymentRecord | None:
        """The entry of the record of the run; None for a run that was started manually."""
        return DeploymentRecord(**asdict(self)) if any(asdict(self).values()) else None

    def key(self, kind: str) -> str:
        """Return the key of an artifact: all runs of a deployment and an index share it, so it shows their history.

        >>> RunSubject("index-rebuilt-handbook", "Handbook_2", "1.42.0").key("summary")
        'summary-index-rebuilt-handbook-handbook-2'
        >>> RunSubject().key("summary")
        'summary'
        """
        words = "-".join(filter(None, (kind, self.name, self.index)))
        return _NOT_IN_KEYS.sub("-", words.lower()).strip("-")

    def describe(self, text: str) -> str:
        """Return the description of an artifact, with the subject in it.

        >>> RunSubject("index-rebuilt", "handbook", "1.42.0").describe("Metrics over 20 rows")
        'Metrics over 20 rows, of index handbook, version 1.42.0, by the deployment index-rebuilt'
        """
        parts = [text]
        if self.index:
            parts.append(f"of index {self.index}" + (f", version {self.version}" if self.version else ""))
        if self.name:
            parts.append(f"by the deployment {self.name}")
        return ", ".join(parts)


def name_evaluation() -> str:
    """Return the name of a run of the flow `evaluate`: its deployment or source, index, version and time."""
    given = flow_run.parameters
    source = str(_field(given.get("config"), "source") or "")
    stem = re.sub(r"\W+", "-", PurePosixPath(source).stem).strip("-").lower()
    return _join(_deployment_name() or stem or "evaluate", given.get("index"), given.get("version"), _time())


def name_index_run() -> str:
    """Return the name of a run of the flow `index-rebuilt`: its deployment, index and version."""
    given = flow_run.parameters
    return _join(_deployment_name() or "index-rebuilt", given.get("index"), given.get("version"))


def name_monitored_run() -> str:
    """Return the name of a run of the flow `monitor`: its deployment, or the evaluation's name or source, and time."""
    config = flow_run.parameters.get("config")
    source = str(_field(config, "source") or "")
    stem = re.sub(r"\W+", "-", PurePosixPath(source).stem).strip("-").lower()
    return _join(_deployment_name() or "monitor", _field(config, "name") or stem, _time())


def name_rerun() -> str:
    """Return the name of a run of the flow `rerun`: the run folder that it starts from, and the time."""
    folder = str(_field(flow_run.parameters.get("request"), "run") or "")
    return _join("rerun", PurePosixPath(folder).name, _time())


def subject_name(name: str | None, source: str | None, index: str = "") -> str:
    """Return the name of an evaluation: as configured, or else that of its index or its source.

    Args:
        index: Id of the index that the run is about; empty if it is about none.

    >>> subject_name(None, "data/answers.jsonl"), subject_name("support", "a.csv")
    ('answers', 'support')
    >>> subject_name("support", None, "handbook"), subject_name(None, "a.csv", "handbook")
    ('support-handbook', 'handbook')
    """
    if index:
        return index if name in (None, index) else f"{name}-{index}"
    return evaluation_name(name, "", source)


def _deployment_name() -> str:
    """Return the name of the deployment of the current flow run; empty if it has none.

    A run without a deployment and without a parent, which would have one, says so itself. Prefect asks its server to
    find out, each time.
    """
    context = FlowRunContext.get()
    run = None if context is None else context.flow_run
    if run is not None and run.deployment_id is None and run.parent_task_run_id is None:
        return ""
    return deployment.name or ""


def _join(*parts: Any) -> str:
    return "-".join(str(part)[:_LONGEST] for part in parts if part)


def _time() -> str:
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}"


def _field(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)
