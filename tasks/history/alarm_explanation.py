"""Explain the alarms after a monitored run: the runs that were read, and the evidence after each."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from metric_core.statistics.alarm_evidence import evidence_after_each
from metric_core.statistics.alarms import RUNS_READ, AlarmSettings
from metric_core.statistics.run_panel import Stream
from tasks.comparison.run_pair import Matching
from tasks.history.open_alarms import AlarmRuns, read_alarm_runs
from tasks.history.recorded_run import COMPLETED, RecordedRun
from tasks.runs.finished_run import FinishedRun


@dataclass(frozen=True, slots=True)
class RunEvidence:
    """Evidence of a run about a metric.

    Args:
        rows: Number of rows that are scored in it and in the baseline.
        change: Mean change of these rows, or over the means of their groups, in units of the metric; None without rows.
        evidence: Evidence that the metric is worse, from this run and those before it.
    """

    started: datetime
    rows: int
    change: float | None
    evidence: float


@dataclass(frozen=True, slots=True)
class AlarmExplanation:
    """The numbers behind the alarms after a run.

    Args:
        threshold: Evidence at which an alarm is raised.
        number: Number of the run among the monitored runs of its calendar year.
        runs_per_year: Number of runs per year that the weights of the runs assume.
        left_out: Sentences on earlier runs that were not read.
        untested: Metric -> reason why it is not tested.
        shared_noise: Metric -> standard deviation of what all rows of a run may share, as a part of its range.
        streams: Metrics over all rows and over slices -> evidence per run, the strongest first.
    """

    threshold: float
    number: int
    runs_per_year: int
    left_out: tuple[str, ...]
    untested: Mapping[str, str]
    shared_noise: Mapping[str, float]
    streams: Mapping[Stream, tuple[RunEvidence, ...]]


def explain_alarms(
    history: Sequence[RecordedRun],
    baseline: FinishedRun,
    run: FinishedRun,
    matching: Matching,
    settings: AlarmSettings | None = None,
) -> AlarmExplanation:
    """Return the numbers behind the alarms after a run.

    Args:
        history: Recorded runs of the evaluation, oldest first.
        settings: Settings of the alarms; None means the defaults.

    Raises:
        ConfigError: The rows cannot be matched, grouped or sliced by these columns.
        RunFolderError: The folder of the run or of the baseline cannot be read.
    """
    settings = settings or AlarmSettings()
    alarm_runs = read_alarm_runs(history, baseline, run, matching)
    panel = alarm_runs.panel
    evidence, means = evidence_after_each(panel, alarm_runs.number, settings), panel.means()
    streams = {}
    for place in np.argsort(-evidence[-1], kind="stable") if panel.metrics else ():
        stream = panel.streams[int(place)]
        unit = panel.ranges[stream.metric] * (-1 if stream.metric in panel.lower_is_better else 1)
        streams[stream] = tuple(
            RunEvidence(
                started,
                panel.count_rows(index, stream),
                None if np.isnan(means[index, place]) else float(means[index, place] * unit),
                float(evidence[index, place]),
            )
            for index, started in enumerate(panel.runs)
        )
    return AlarmExplanation(
        threshold=1 / settings.error,
        number=alarm_runs.number,
        runs_per_year=settings.runs,
        left_out=(*_sentences_on_others(alarm_runs), *alarm_runs.left_out),
        untested=panel.untested,
        shared_noise={metric: noise for metric, noise in panel.shared_noise.items() if noise},
        streams=streams,
    )


def _sentences_on_others(alarm_runs: AlarmRuns) -> Iterator[str]:
    """Yield sentences on runs that could be read but do not count."""
    if others := len(alarm_runs.monitored) - len(alarm_runs.compared):
        yield f"{others} monitored run{'s' * (others != 1)} with another baseline or without one"
    if earlier := max(0, len(alarm_runs.compared) - (RUNS_READ - 1)):
        yield f"{earlier} run{'s' * (earlier != 1)} before the last {RUNS_READ}"
    for run in alarm_runs.compared[1 - RUNS_READ :]:
        started = f"the run of {run.created:%Y-%m-%d %H:%M}"
        if run.status != COMPLETED:
            yield f"{started}, which was not completed"
        elif run.created not in alarm_runs.panel.runs and not any(started in each for each in alarm_runs.left_out):
            yield f"{started}, whose rows have no name in common with those of the baseline"
