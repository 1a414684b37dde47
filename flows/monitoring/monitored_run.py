"""Describe the subject of a monitored run: an evaluation or a version of an index, and what started the run."""

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from prefect.runtime import flow_run

from flows.config.result_options import MonitoringOptions
from flows.publishing.run_subject import RunSubject, subject_name
from tasks.record.outcome import Trigger
from tasks.runs.baselines import EVALUATIONS, Baseline
from tasks.runs.finished_run import FinishedRun
from tasks.runs.index_versions import IndexVersion
from tasks.runs.run_start import RunStart


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitoredRun:
    """The subject of a monitored run.

    Args:
        name: Name of the evaluation, by which its history and its incidents are kept.
        index: Id of the index that the run is about; empty if it is about none.
        version: Version of the index, or the time at which the run started.
        announced: Time at which the version was announced, or the run started.
        deployment: Deployment whose baselines are used; EVALUATIONS for a run about no index.
    """

    name: str
    trigger: Trigger
    index: str = ""
    version: str
    announced: datetime
    dataset: str = ""
    deployment: str = EVALUATIONS

    @classmethod
    def now(cls, options: MonitoringOptions, trigger: Trigger) -> "MonitoredRun":
        """Return the subject of a run that starts now and is not about an index."""
        time = datetime.now(UTC).replace(microsecond=0)
        return cls(
            name=subject_name(options.name, options.source),
            trigger=trigger,
            version=f"{time:%Y-%m-%dT%H:%M:%SZ}",
            announced=time,
            dataset=options.source or "",
        )

    @property
    def key(self) -> str:
        """The key of its baselines: the index, or else the name."""
        return self.index or self.name

    @property
    def place(self) -> IndexVersion:
        """The place of the run among the versions."""
        return IndexVersion(self.version, self.announced)

    @property
    def start(self) -> RunStart:
        """The start of the current flow run: a late one was due when its schedule says."""
        due = self.announced if flow_run.id is None else flow_run.scheduled_start_time or self.announced
        return RunStart(self.trigger, datetime.fromtimestamp(due.timestamp(), UTC))  # Prefect has its own type of times

    @property
    def subject(self) -> RunSubject:
        """The subject of its artifacts and of its metrics file."""
        return RunSubject.of_run(self.index, self.version if self.index else "")

    @property
    def title(self) -> str:
        """The subject in words.

        >>> time = datetime(2026, 11, 18, tzinfo=UTC)
        >>> MonitoredRun(name="support", trigger="manual", version="2026-11-18T06:00:00Z", announced=time).title
        'the run of 2026-11-18T06:00:00Z'
        >>> MonitoredRun(name="a", trigger="event", index="a", version="7", announced=time).title
        'version 7'
        """
        return f"version {self.version}" if self.index else f"the run of {self.version}"

    def baseline(self, folder: Path, why: Literal["first", "passed"]) -> Baseline:
        """Return the record that makes a finished run of this subject a baseline."""
        return Baseline(
            index=self.key,
            version=self.version,
            announced=self.announced,
            run_id=str(flow_run.id) if self.index else FinishedRun(folder).run_id,
            folder=str(folder),
            dataset=self.dataset,
            accepted=datetime.now(UTC),
            why=why,
        )
