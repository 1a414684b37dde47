"""Find the alarms that are open after a monitored run, from the earlier runs with the same baseline."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC
from itertools import islice
from pathlib import Path

from metric_core.errors import RunFolderError
from metric_core.statistics.alarms import RUNS_READ, Alarm, AlarmSettings, update_alarms
from metric_core.statistics.run_panel import FIRST_RUNS, Panel
from metric_core.statistics.shared_noise import limit_shared_noise
from tasks.comparison.run_pair import Matching
from tasks.history.alarm_entries import read_alarm_state
from tasks.history.monitored_scores import read_monitored_runs
from tasks.history.recorded_folder import open_run
from tasks.history.recorded_run import COMPLETED, RecordedRun
from tasks.record.outcome import OutcomeAlarm, RunOutcome
from tasks.runs.finished_run import FinishedRun


@dataclass(frozen=True, slots=True)
class OpenAlarms:
    """The alarms after a monitored run.

    Args:
        alarms: Open alarms, new and earlier ones.
        runs: Number of runs that were compared with the baseline, including this one.
        untested: Metric -> reason why it is not tested.
        left_out: Sentences on earlier runs that could not be read.
        before: Alarms of the previous run, in words.
        steps: Metric -> change of its mean since the previous run, and its standard error over rows, in its units.
        shared_noise: Metric -> standard deviation of what all rows of a run may share, in its units.
        ratios: Metrics without a greatest value, whose units are decimal logarithms of ratios.
    """

    alarms: tuple[Alarm, ...]
    runs: int
    untested: Mapping[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    before: tuple[OutcomeAlarm, ...] = ()
    steps: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    shared_noise: Mapping[str, float] = field(default_factory=dict)
    ratios: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class AlarmRuns:
    """The runs that the alarms after a run are computed from.

    Args:
        panel: Rows of these runs and of the baseline.
        number: Number of the run among the monitored runs of its calendar year.
        monitored: Earlier monitored runs, oldest first.
        compared: Those with the same baseline.
        left_out: Sentences on those that could not be read.
    """

    panel: Panel
    number: int
    monitored: tuple[RecordedRun, ...]
    compared: tuple[RecordedRun, ...]
    left_out: tuple[str, ...]


def read_alarm_runs(
    history: Sequence[RecordedRun], baseline: FinishedRun, run: FinishedRun, matching: Matching
) -> AlarmRuns:
    """Return the runs that the alarms after a run are computed from; see `find_open_alarms`."""
    started = run.started
    monitored = [
        each for each in history if each.outcome is not None and each.run_id != run.run_id and each.created <= started
    ]
    year = started.astimezone(UTC).year
    number = 1 + sum(each.created.astimezone(UTC).year == year for each in monitored)
    compared = [each for each in monitored if _has_baseline(each, baseline.run_id)]
    left_out: list[str] = []
    recent, first = compared[1 - RUNS_READ :], find_first_runs(compared)
    if any(each.outcome is not None and each.outcome.alarms for each in first):
        first = []  # these runs have lost too much for a baseline
    names = {each.run_id for each in recent}
    earlier = open_runs([each for each in first if each.run_id not in names], [])
    runs = open_runs(recent, left_out)
    panel = read_monitored_runs(baseline, [*earlier, *runs, run], matching)
    if len(first) == FIRST_RUNS - 1:
        panel = panel.with_first_runs(first[-1].created)
    panel = replace(panel, shared_noise=_limit_shared_noise(panel, monitored))
    shown = [place for place, start in enumerate(panel.runs) if not recent or start >= recent[0].created]
    return AlarmRuns(panel.select(shown), number, tuple(monitored), tuple(compared), tuple(left_out))


def _limit_shared_noise(panel: Panel, monitored: Iterable[RecordedRun]) -> dict[str, float]:
    """Return what all rows of a run may share, as a part of the range of each metric, from earlier outcomes.

    The steps of runs with an alarm about the metric do not count: a drop or its repair is not noise.
    """
    steps: dict[str, list[tuple[float, float]]] = {metric: [] for metric in panel.metrics}
    for outcome in (each.outcome for each in monitored if each.outcome is not None):
        worse = {alarm.metric for alarm in outcome.alarms}
        for metric in (steps.keys() & outcome.steps.keys()) - worse:
            steps[metric].append(outcome.steps[metric])
    return {metric: limit_shared_noise(found, panel.ranges[metric]) for metric, found in steps.items()}


def find_first_runs(compared: Iterable[RecordedRun]) -> list[RecordedRun]:
    """Return the runs that are a second baseline together with the accepted one, or as many as there are yet.

    Args:
        compared: Runs that were compared with the same baseline, oldest first.
    """
    return list(islice((each for each in compared if each.status == COMPLETED), FIRST_RUNS - 1))


def find_baseline_folders(runs: Iterable[RecordedRun], accepted: Collection[Path]) -> frozenset[Path]:
    """Return the run folders that alarms compare later runs with: those of accepted runs, and of the first after each.

    Args:
        runs: Runs of all evaluations, oldest first.
        accepted: Run folders of the accepted runs.
    """
    found = set(accepted)
    compared: dict[str, list[RecordedRun]] = {}
    for each in runs:
        baseline = None if each.outcome is None else each.outcome.baseline
        if baseline is not None and Path(baseline.folder) in found:
            compared.setdefault(baseline.run_id, []).append(each)
    found |= {Path(each.folder) for following in compared.values() for each in find_first_runs(following)}
    return frozenset(found)


def find_open_alarms(
    history: Sequence[RecordedRun],
    baseline: FinishedRun,
    run: FinishedRun,
    matching: Matching,
    settings: AlarmSettings | None = None,
) -> OpenAlarms:
    """Return the alarms that are open after a run.

    They are computed from the monitored runs whose outcome names the same baseline. Runs without an outcome, which
    someone started manually, do not count.

    Args:
        history: Recorded runs of the evaluation, oldest first.
        run: Run that has just finished; its own entry in the history, if there is one, is ignored.
        settings: Settings of the alarms; None means the defaults.

    Raises:
        ConfigError: The rows of the run cannot be matched with those of the baseline, or rows cannot be grouped or
            sliced by these columns.
        RunFolderError: The folder of the run or of the baseline cannot be read.
    """
    read = read_alarm_runs(history, baseline, run, matching)
    panel, number, left_out = read.panel, read.number, list(read.left_out)
    # A run that could not be compared has no state: alarms that were open before it are open after it.
    before = next((each.outcome for each in reversed(read.compared) if each.outcome and each.outcome.alarm_state), None)
    previous = [] if before is None else _read_previous(before, left_out)
    alarms = update_alarms(panel, number, settings, previous)
    earlier = () if before is None else before.alarms
    sizes = panel.ranges
    return OpenAlarms(
        tuple(alarms),
        len(panel.runs),
        panel.untested,
        tuple(left_out),
        earlier,
        {metric: (step * sizes[metric], error * sizes[metric]) for metric, (step, error) in panel.last_step().items()},
        {metric: noise * sizes[metric] for metric, noise in panel.shared_noise.items()},
        panel.ratios,
    )


def _has_baseline(run: RecordedRun, run_id: str) -> bool:
    return run.outcome is not None and run.outcome.baseline is not None and run.outcome.baseline.run_id == run_id


def open_runs(recorded: Sequence[RecordedRun], left_out: list[str]) -> list[FinishedRun]:
    """Return the finished ones of recorded runs.

    Args:
        left_out: List to which a sentence is added for each run that cannot be read.
    """
    runs = []
    for each in recorded:
        if each.status != COMPLETED or not each.folder:
            continue
        try:
            runs.append(open_run(each))
        except RunFolderError as error:
            left_out.append(f"alarms do without the run of {each.created:%Y-%m-%d %H:%M}: {error}")
    return runs


def _read_previous(before: RunOutcome, left_out: list[str]) -> list[Alarm]:
    try:
        return read_alarm_state(before.alarm_state)
    except RunFolderError as error:
        left_out.append(str(error))
        return []
