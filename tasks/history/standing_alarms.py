"""Find the alarms that stand after a monitored run, from the runs before it that had the same baseline."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import islice

from metric_core.errors import ConfigError, RunFolderError
from metric_core.statistics.alarms import NIGHTS_READ, Alarm, AlarmSettings, update_alarms
from metric_core.statistics.further_drops import NIGHTS_COMPARED, keep_sizes, update_further_alarms
from metric_core.statistics.run_panel import Panel
from tasks.comparison.run_pair import Matching
from tasks.history.alarm_entries import read_alarm_state
from tasks.history.monitored_scores import read_monitored_runs
from tasks.history.recorded_run import RecordedRun
from tasks.runs.finished_run import FinishedRun
from tasks.runs.outcome import OutcomeAlarm, RunOutcome


@dataclass(frozen=True, slots=True)
class StandingAlarms:
    """The alarms after a monitored run.

    Args:
        alarms: Alarms that stand, new and earlier ones.
        nights: Number of runs that were looked at, this one included.
        unwatched: Metric -> reason why it is not watched.
        left_out: Sentences on earlier runs that could not be read.
        before: Alarms of the night before, in words.
    """

    alarms: tuple[Alarm, ...]
    nights: int
    unwatched: Mapping[str, str] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    before: tuple[OutcomeAlarm, ...] = ()


@dataclass(frozen=True, slots=True)
class AlarmRuns:
    """The runs that alarms look at after a run.

    Args:
        panel: Rows of these runs and of the baseline.
        number: Number of the run among the monitored runs of its calendar year.
        monitored: Earlier monitored runs, oldest first.
        nights: Those with the same baseline.
        left_out: Sentences on those that could not be read.
    """

    panel: Panel
    number: int
    monitored: tuple[RecordedRun, ...]
    nights: tuple[RecordedRun, ...]
    left_out: tuple[str, ...]


def read_alarm_runs(
    history: Sequence[RecordedRun], baseline: FinishedRun, run: FinishedRun, matching: Matching
) -> AlarmRuns:
    """Return the runs that alarms look at after a run; see `find_standing_alarms`."""
    started = datetime.fromisoformat(run.manifest["created"])
    started = started if started.tzinfo is not None else started.replace(tzinfo=UTC)
    monitored = [
        each for each in history if each.outcome is not None and each.run_id != run.run_id and each.created <= started
    ]
    year = started.astimezone(UTC).year
    number = 1 + sum(each.created.astimezone(UTC).year == year for each in monitored)
    nights = [each for each in monitored if _has_baseline(each, baseline.run_id)]
    left_out: list[str] = []
    runs = _open_runs(nights[1 - NIGHTS_READ :], left_out)
    panel = read_monitored_runs(baseline, [*runs, run], matching)
    return AlarmRuns(panel, number, tuple(monitored), tuple(nights), tuple(left_out))


def find_standing_alarms(
    history: Sequence[RecordedRun],
    baseline: FinishedRun,
    run: FinishedRun,
    matching: Matching,
    settings: AlarmSettings | None = None,
) -> StandingAlarms:
    """Return the alarms that stand after a run.

    The nights are the monitored runs whose outcome names the same baseline. Runs without an outcome, which someone
    started by hand, are no nights.

    Args:
        history: Recorded runs of the evaluation, oldest first.
        run: Run that has just finished; its own entry in the history, if there is one, is passed over.
        settings: Settings of the alarms; None means the defaults.

    Raises:
        ConfigError: The rows of the run cannot be matched with those of the baseline, or rows cannot be grouped or
            sliced by these columns.
        RunFolderError: The folder of the run or of the baseline cannot be read.
    """
    watched = read_alarm_runs(history, baseline, run, matching)
    panel, number, nights, left_out = watched.panel, watched.number, watched.nights, list(watched.left_out)
    # A night that could not be compared has no state: what stood before it stands after it.
    before = next((each.outcome for each in reversed(nights) if each.outcome and each.outcome.alarm_state), None)
    previous = [] if before is None else _read_previous(before, left_out)
    alarms = update_alarms(panel, number, settings, previous)
    if previous:
        standing = [*alarms, *(alarm for alarm in previous if alarm.further)]
        references = _read_references(baseline, nights, previous, matching) or panel.recent(0)
        further = update_further_alarms(panel, references, number, settings, standing)
        alarms = [*keep_sizes(alarms, further, previous), *further]
    told = () if before is None else before.alarms
    return StandingAlarms(tuple(alarms), len(panel.nights), panel.unwatched, tuple(left_out), told)


def _has_baseline(run: RecordedRun, run_id: str) -> bool:
    return run.outcome is not None and run.outcome.baseline is not None and run.outcome.baseline.run_id == run_id


def _open_runs(nights: Sequence[RecordedRun], left_out: list[str]) -> list[FinishedRun]:
    """Return the finished runs of nights; a sentence is added for each that cannot be read."""
    runs = []
    for night in nights:
        if night.status != "completed" or not night.folder:
            continue
        try:
            run = FinishedRun(night.folder)
        except RunFolderError as error:
            left_out.append(f"alarms do without the run of {night.created:%Y-%m-%d %H:%M}: {error}")
            continue
        if run.run_id == night.run_id:
            runs.append(run)
        else:
            left_out.append(
                f"alarms do without the run of {night.created:%Y-%m-%d %H:%M}: its folder {night.folder} holds another "
                "run. Give each run a folder of its own."
            )
    return runs


def _read_references(
    baseline: FinishedRun, nights: Sequence[RecordedRun], alarms: Sequence[Alarm], matching: Matching
) -> Panel | None:
    """Return the nights that raised alarms and those after them; None if they are all gone."""
    found: dict[str, FinishedRun] = {}
    for told in sorted({alarm.told for alarm in alarms}):
        opened = (run for night in nights if night.created >= told for run in _open_runs([night], []))
        found |= {run.run_id: run for run in islice(opened, NIGHTS_COMPARED)}
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
