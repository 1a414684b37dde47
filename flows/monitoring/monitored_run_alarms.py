"""Raise the alarms of a monitored run: metrics that have become worse since the accepted baseline."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import isclose, sqrt
from pathlib import Path
from typing import Any

from flows.config.result_options import MonitoringOptions
from flows.config.run_rate import runs_per_year
from metric_core.errors import AssayError, ConfigError
from metric_core.statistics.alarms import ERROR, RUNS_OF_YEAR, Alarm, AlarmSettings
from metric_core.statistics.shared_noise import ASSUMED_NOISE, limit_deviations
from tasks.comparison.changed_side import Side, SideFinder
from tasks.comparison.run_pair import Matching, RunPair
from tasks.findings.judge_facts import judge_evidence
from tasks.history.alarm_entries import outcome_alarm, write_alarm_state
from tasks.history.alarm_explanation import AlarmExplanation, explain_alarms
from tasks.history.open_alarms import find_open_alarms
from tasks.history.recorded_run import RecordedRun
from tasks.record.outcome import OutcomeAlarm, OutcomeIncident
from tasks.runs.finished_run import FinishedRun
from tasks.runs.outcome_file import read_outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class RunAlarms:
    """The alarms that are open after a monitored run.

    Args:
        alarms: Open alarms, new and earlier ones.
        state: The open alarms, as JSON for the next run.
        changes: Sentences on what changed in the measurement since the baseline: judge, prompts, settings.
        obstacle: Reason why no alarm could be looked for; None if that was possible.
        left_out: Sentences on earlier runs that could not be read, so that the alarms do without them.
        steps: Metric -> change of its mean since the previous run, and its standard error over rows.
        shared_noise: Metric -> standard deviation of what all rows of a run may share.
        ratios: Metrics without a greatest value, for which both are decimal logarithms of ratios.
    """

    alarms: tuple[OutcomeAlarm, ...] = ()
    state: dict[str, Any] = field(default_factory=dict)
    changes: tuple[str, ...] = ()
    obstacle: str | None = None
    left_out: tuple[str, ...] = ()
    steps: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    shared_noise: Mapping[str, float] = field(default_factory=dict)
    ratios: frozenset[str] = frozenset()

    @property
    def is_worse(self) -> bool:
        """Whether there is an alarm whose drop the run has not regained."""
        return any(not alarm.is_regained for alarm in self.alarms)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Sentences on what the alarms could not look at."""
        missing = () if self.obstacle is None else (f"no alarms are looked for: {self.obstacle}",)
        return (*missing, *self.left_out)

    @property
    def margin(self) -> str:
        """Sentence on the noise of whole runs that drops have to exceed.

        It is empty if that of their rows is larger, or as long as the noise is assumed, because no runs have shown it.
        """
        deviations = limit_deviations(ERROR, RUNS_OF_YEAR)
        sizes = [
            f"{self._describe_move(metric, deviations * sqrt(2) * noise)} for {metric}"
            for metric, noise in self.shared_noise.items()
            if metric in self.steps and sqrt(2) * noise > self.steps[metric][1] and not isclose(noise, ASSUMED_NOISE)
        ]
        return f"by earlier runs, all rows of a run move together by up to {', '.join(sizes)}" if sizes else ""

    def _describe_move(self, metric: str, size: float) -> str:
        return f"a factor of {10**size:.2g}" if metric in self.ratios else f"{size:.2g}"

    def incidents(self, run_id: str) -> tuple[OutcomeIncident, ...]:
        """Return the alarms as incidents."""
        now = datetime.now(UTC)
        return tuple(
            OutcomeIncident(
                key=alarm_key(alarm),
                kind="alarm",
                sentence=alarm.sentence,
                since=now,
                run_id=run_id,
                cause=alarm.cause or "",
            )
            for alarm in self.alarms
        )


def alarm_key(alarm: OutcomeAlarm) -> str:
    """Return the key of the incident that an alarm is.

    >>> alarm_key(OutcomeAlarm(metric="faithfulness", sentence="", slice={"language": "de"}))
    'alarm:faithfulness, language de'
    """
    part = "".join(f", {column} {value}" for column, value in (alarm.slice or {}).items())
    return f"alarm:{alarm.metric}{part}"


def find_run_alarms(options: MonitoringOptions, baseline: Path, folder: Path, runs: Sequence[RecordedRun]) -> RunAlarms:
    """Look for metrics that have become worse since the baseline, over this run and those before it.

    Args:
        baseline: Run folder of the baseline.
        runs: Earlier monitored runs of the evaluation, oldest first.
    """
    try:
        return _find(options, FinishedRun(baseline), FinishedRun(folder), runs)
    except AssayError as error:
        return RunAlarms(obstacle=str(error))


def _find(
    options: MonitoringOptions, baseline: FinishedRun, run: FinishedRun, runs: Sequence[RecordedRun]
) -> RunAlarms:
    matching, settings = _read_settings(options, run)
    found = find_open_alarms(runs, baseline, run, matching, settings)
    pair = RunPair.from_runs(baseline, run, matching)
    finder = SideFinder(baseline, pair, judge_evidence(baseline, run))
    known = {alarm_key(alarm): alarm for alarm in found.before}
    return RunAlarms(
        alarms=tuple(name_cause(alarm, finder, pair, known) for alarm in found.alarms),
        state=write_alarm_state(found.alarms),
        changes=finder.changes,
        left_out=found.left_out,
        steps=found.steps,
        shared_noise=found.shared_noise,
        ratios=found.ratios,
    )


def explain(options: MonitoringOptions | None, folder: Path, runs: Sequence[RecordedRun]) -> AlarmExplanation:
    """Return the numbers behind the alarms of a monitored run.

    Args:
        options: Options of the comparison, and the schedule; None takes the options of the run, rows that are matched
            by their ids, and a run a day.
        runs: Runs of the evaluation, oldest first.

    Raises:
        ConfigError: The run was not compared with a baseline.
        RunFolderError: A run folder cannot be read.
    """
    run = FinishedRun(folder)
    outcome = read_outcome(run.folder)
    if outcome is None or outcome.baseline is None or outcome.index:
        raise ConfigError(
            f"no alarm was looked for after the run in {folder}: it was not compared with an accepted run, or it is "
            "about a version of an index, which the gate decides on. Name a run of `assay monitor` or of a schedule "
            "that has a baseline"
        )
    if options is None:
        known = {name: value for name, value in run.config.items() if name in MonitoringOptions.model_fields}
        options = MonitoringOptions.model_validate(known)
    return explain_alarms(runs, FinishedRun(outcome.baseline.folder), run, *_read_settings(options, run))


def _read_settings(options: MonitoringOptions, run: FinishedRun) -> tuple[Matching, AlarmSettings]:
    """Return how rows are matched, grouped and sliced, and the settings of the alarms."""
    by = options.by or run.record.config.by
    started = datetime.fromisoformat(run.record.created)
    settings = AlarmSettings(runs=runs_per_year(options.deploy, started))
    return Matching(options.deploy.match, by, options.slices), settings


def name_cause(alarm: Alarm, finder: SideFinder, pair: RunPair, known: Mapping[str, OutcomeAlarm]) -> OutcomeAlarm:
    """Return an alarm with the cause of the change since the baseline.

    A cause that an earlier run found is kept until another one is found: a run that shows no cause, or is no longer
    worse, does not refute it.

    Args:
        known: Alarms of the previous run, by their keys.
    """
    plain = outcome_alarm(alarm)
    before = known.get(alarm_key(plain))
    if not alarm.is_regained:
        found = finder.find(alarm.stream.metric, _rows_of(alarm, pair))
        is_found = found.side is not Side.UNKNOWN
        is_open = finder.has_evidence and (before is None or before.cause in (None, Side.UNKNOWN))
        if is_found or is_open:
            return outcome_alarm(alarm, found.side.value, found.reason)
    return plain if before is None else outcome_alarm(alarm, before.cause, before.reason)


def _rows_of(alarm: Alarm, pair: RunPair) -> frozenset[str] | None:
    """Return the rows of an alarm's slice, or group; None for all rows."""
    part = alarm.stream.slice
    if part is None:
        return None
    values = next((each.values for each in pair.slices if each.column == part.column), pair.b.groups)
    return frozenset(row for row, value in values.items() if value.strip() == part.value)
