"""Find the alarms that are open after a monitored run, from the earlier runs with the same baseline."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice

from metric_core.errors import ConfigError, RunFolderError
from metric_core.statistics.alarms import RUNS_READ, Alarm, AlarmSettings, update_alarms
from metric_core.statistics.further_drops import RUNS_COMPARED, keep_sizes, update_further_alarms
from metric_core.statistics.run_panel import Panel
from tasks.comparison.run_pair import Matching
from tasks.history.alarm_entries import read_alarm_state
from tasks.history.monitored_scores import read_monitored_runs
from tasks.history.recorded_run import RecordedRun
from tasks.runs.finished_run import FinishedRun
from tasks.runs.outcome import OutcomeAlarm, RunOutcome


@dataclass(frozen=True, slots=True)
class OpenAlarms:
    """The alarms after a monitored run.

    Args:
        alarms: Open alarms, new and earlier ones.
        runs: Number of runs that were compared with the baseline, including this one.
        untested: Metric -> reason why it is not tested.
        left_out: Sentences on earlier runs that could not be read.
        before: Alarms of the previous run, in words.
    """

    alarms: tuple[Alarm, ...]
    runs: int
    untested: Mapping[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    before: tuple[OutcomeAlarm, ...] = ()


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
    started = datetime.fromisoformat(run.manifest["created"])
    started = started if started.tzinfo is not None else started.replace(tzinfo=UTC)
    monitored = [
        each for each in history if each.outcome is not None and each.run_id != run.run_id and each.created <= started
    ]
    year = started.astimezone(UTC).year
    number = 1 + sum(each.created.astimezone(UTC).year == year for each in monitored)
    compared = [each for each in monitored if _has_baseline(each, baseline.run_id)]
    left_out: list[str] = []
    runs = _open_runs(compared[1 - RUNS_READ :], left_out)
    panel = read_monitored_runs(baseline, [*runs, run], matching)
    return AlarmRuns(panel, number, tuple(monitored), tuple(compared), tuple(left_out))


def find_open_alarms(
    history: Sequence[RecordedRun],
    baseline: FinishedRun,
    run: FinishedRun,
    matching: Matching,
    settings: AlarmSettings | None = None,
) -> OpenAlarms:
    """Return the alarms that are open after a run.

    They are computed from the monitored runs whose outcome names the same baseline. Runs without an outcome, which
    someone started by hand, do not count.

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
    if previous:
        known = [*alarms, *(alarm for alarm in previous if alarm.further)]
        references = _read_references(baseline, read.compared, previous, matching) or panel.recent(0)
        further = update_further_alarms(panel, references, number, settings, known)
        alarms = [*keep_sizes(alarms, further, previous), *further]
    earlier = () if before is None else before.alarms
    return OpenAlarms(tuple(alarms), len(panel.runs), panel.untested, tuple(left_out), earlier)


def _has_baseline(run: RecordedRun, run_id: str) -> bool:
    return run.outcome is not None and run.outcome.baseline is not None and run.outcome.baseline.run_id == run_id


def _open_runs(recorded: Sequence[RecordedRun], left_out: list[str]) -> list[FinishedRun]:
    """Return the finished ones of recorded runs; a sentence is added for each that cannot be read."""
    runs = []
    for each in recorded:
        if each.status != "completed" or not each.folder:
            continue
        try:
            run = FinishedRun(each.folder)
        except RunFolderError as error:
            left_out.append(f"alarms do without the run of {each.created:%Y-%m-%d %H:%M}: {error}")
            continue
        if run.run_id == each.run_id:
            runs.append(run)
        else:
            left_out.append(
                f"alarms do without the run of {each.created:%Y-%m-%d %H:%M}: its folder {each.folder} contains "
                "another run. Give each run a separate folder."
            )
    return runs


def _read_references(
    baseline: FinishedRun, recorded: Sequence[RecordedRun], alarms: Sequence[Alarm], matching: Matching
) -> Panel | None:
    """Return the runs that raised alarms and those after them; None if they are all gone."""
    found: dict[str, FinishedRun] = {}
    for raised in sorted({alarm.raised for alarm in alarms}):
        opened = (run for each in recorded if each.created >= raised for run in _open_runs([each], []))
        found |= {run.run_id: run for run in islice(opened, RUNS_COMPARED)}
    try:
        return read_monitored_runs(baseline, [*found.values()], Matching(matching.match)) if found else None
    except ConfigError:  # their rows cannot be matched
        return None


def _read_previous(before: RunOutcome, left_out: list[str]) -> list[Alarm]:
    try:
        return read_alarm_state(before.alarm_state)
    except RunFolderError as error:
        left_out.append(str(error))
        return []
