"""Define the outcome of a monitored run: `outcome.json` in its run folder.

It says what started the run, which baseline it was compared with, what the gate and the sequential alarms found,
whether the run was accepted, and which incidents it opened and ended.
"""

from datetime import date, datetime
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, Field

Trigger: TypeAlias = Literal["schedule", "event", "manual"]
GateOutcome: TypeAlias = Literal["passed", "failed", "inconclusive"]
Cause: TypeAlias = Literal["system", "judge", "unknown"]

FORMAT: Literal[1] = 1


class _Part(BaseModel, frozen=True, extra="ignore"):
    """A part of an outcome; entries that a later release adds are ignored."""


class OutcomeBaseline(_Part):
    """The accepted run that a run was compared with.

    Args:
        run_id: Id of the accepted run.
        folder: Its run folder, on the machine that wrote it.
        version: Version of its index, or the time at which it started.
    """

    run_id: str
    folder: str
    version: str


class OutcomeCheck(_Part):
    """A rule of the gate and its result.

    Args:
        rule: The rule, as the gate writes it.
        observed: Value that the rule was applied to; None if there is none.
        interval: Interval of this value.
        rows: Number of rows behind it.
        reason: Reason for the result.
        slice: Column and value of the rows that the rule is about; None for all rows.
    """

    metric: str
    rule: str
    outcome: GateOutcome
    observed: float | None = None
    interval: tuple[float, float] | None = None
    rows: int = 0
    reason: str = ""
    slice: dict[str, str] | None = None


class OutcomeAlarm(_Part):
    """An alarm of the sequential tests: a metric is worse than in the accepted baseline.

    Args:
        sentence: The alarm in words, with its cause if that is known.
        since: First day on which the metric was worse; None if that is not known.
        drop: Least and largest size of the drop.
        cause: The part that has changed, such as the judge; None if that was not looked for.
        slice: Column and value of the rows that the alarm is about; None for all rows.
        reason: Sentence on why this is the cause; empty without one.
        is_regained: True if the run has regained more than half of the drop: another such run ends the alarm.
        rows: Number of rows of the baseline that the run has scores of, and number of rows of the baseline.
    """

    metric: str
    sentence: str
    since: date | None = None
    drop: tuple[float, float] | None = None
    cause: Cause | None = None
    slice: dict[str, str] | None = None
    reason: str = ""
    is_regained: bool = False
    rows: tuple[int, int] = (0, 0)


class OutcomeCoverage(_Part):
    """The part of the rows and values of a baseline that a run has.

    Args:
        rows: Number of rows of the baseline that the run has, and number of rows of the baseline.
        others: Number of rows that only the run has.
        retired: Number of rows of the baseline that the run lacks as they are questions from an index that retired.
        retired_from: Known documents that held the evidence of these questions.
        values: Column -> number of rows of both runs in which both have a value, and in which the baseline has one, for
            columns that lost some; those of `extras` by their own names. What defines the test is left out: runs with
            another reference cannot be compared.
    """

    rows: tuple[int, int]
    others: int = 0
    retired: int = 0
    retired_from: tuple[str, ...] = ()
    values: dict[str, tuple[int, int]] = Field(default_factory=dict)


class OutcomeIncident(_Part):
    """Something that is wrong from one run until it is over.

    Args:
        key: Name of the incident among those of an evaluation: an incident is open once at a time.
        kind: Kind of the problem: a rule of the gate, an alarm, an error, the source, what the run cost, missed runs, a
            judge, a baseline that cannot be compared with, an entry of the history that is not as it should be, or an
            objective whose error budget is spent.
        sentence: The incident in words.
        since: Time at which it was found first.
        run_id: Id of the run that found it first.
        cause: The part that has changed, such as the system or the judge; empty while it is not known.
    """

    key: str
    kind: Literal["gate", "alarm", "error", "source", "cost", "missed", "comparison", "judge", "record", "objective"]
    sentence: str
    since: datetime
    run_id: str = ""
    cause: str = ""


class OutcomeIncidents(_Part):
    """The incidents of an evaluation as a run changed them.

    Args:
        opened: Incidents that the run found; the message about the run is about these.
        continuing: Incidents that earlier runs found and that are not over.
        recovered: Incidents that are over.
        replaced: Incidents that others replace, or that are no longer checked: they end without a message.
    """

    opened: tuple[OutcomeIncident, ...] = ()
    continuing: tuple[OutcomeIncident, ...] = ()
    recovered: tuple[OutcomeIncident, ...] = ()
    replaced: tuple[OutcomeIncident, ...] = ()

    @property
    def is_open(self) -> bool:
        """Whether any incident is open after the run."""
        return bool(self.opened or self.continuing)


class RunOutcome(_Part):
    """The outcome of a monitored run.

    Args:
        format: Format of outcome.json.
        trigger: Cause of the run: its schedule, an event, or a person.
        index: Id of the index that the run is about; empty if it is about none.
        version: Version of the index, or the time at which the run started.
        baseline: Run that it was compared with; None for the first run.
        gate: Outcome of the gate; None if no gate was applied.
        checks: Rules of the gate and their results.
        alarms: Alarms of the sequential tests.
        alarm_state: Sums of the sequential tests over this run and those before it, as JSON.
        steps: Metric -> change of its mean since the previous run, and its standard error over rows.
        shared_noise: Metric -> largest standard deviation of what all rows of a run share that the steps of earlier
            runs do not refute; alarms need a drop beyond it.
        changes: Sentences on what changed in the system, the judge or the data since the baseline.
        since_last: Sentences on metrics that differ significantly from those of the previous run; not alarms.
        diagnosis: Sentence on which rows became worse, and where in the pipeline.
        accepted: True if the run became the baseline.
        message: The outcome in words.
        incidents: Incidents that the run opened, found open and ended.
        kept: The part of its baseline's rows and values that the run has; None if it was not compared with one.
        undelivered: A sentence for each recipient that has not accepted the messages about the evaluation.
        baselines: Folder or URL of the accepted baselines; None means ASSAY_HOME/baselines.
    """

    format: Literal[1] = FORMAT
    name: str
    trigger: Trigger
    index: str = ""
    version: str = ""
    baseline: OutcomeBaseline | None = None
    gate: GateOutcome | None = None
    checks: tuple[OutcomeCheck, ...] = ()
    alarms: tuple[OutcomeAlarm, ...] = ()
    alarm_state: dict[str, Any] = Field(default_factory=dict)
    steps: dict[str, tuple[float, float]] = Field(default_factory=dict)
    shared_noise: dict[str, float] = Field(default_factory=dict)
    changes: tuple[str, ...] = ()
    since_last: tuple[str, ...] = ()
    diagnosis: str | None = None
    accepted: bool = False
    message: str = ""
    incidents: OutcomeIncidents = OutcomeIncidents()
    kept: OutcomeCoverage | None = None
    undelivered: tuple[str, ...] = ()
    baselines: str | None = None
