"""The chain of a monitored run: evaluate, compare with the baseline, apply the gate, then accept the run or alert.

It is the same for a schedule, an event and a person, and so are its options. The outcome is in `outcome.json` in the
run folder and in the history.

A version of an index that passes the gate becomes the baseline. Of runs about no index, the first becomes the baseline
and stays it until a person accepts another: a baseline that moves each night hides a slow decline. With
`deploy.accept = "passed"` each run that passes becomes the baseline.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal, TypeAlias

from prefect.artifacts import create_markdown_artifact
from prefect.logging import get_run_logger
from prefect.runtime import flow_run

from flows.compare import ARTIFACT
from flows.config.deploy_options import default_gate
from flows.config.gate_file import GateSettings
from flows.config.run_config import RunConfig
from flows.execution.gated_comparison import CompareOptions, compare_runs
from flows.execution.history_record import record_in_history
from flows.execution.run_subject import RunSubject
from flows.monitoring.alerts import Alert, link_to, send
from flows.monitoring.gating import Judged, describe_change, describe_unlike, find_gate_incidents, judge_run
from flows.monitoring.incidents import IncidentBook, change_incidents
from flows.monitoring.judge_changes import find_judge_incidents
from flows.monitoring.night_alarms import NightAlarms, find_alarms
from flows.monitoring.night_checks import find_night_incidents
from flows.monitoring.watched import Watched
from metric_core.errors import AssayError
from metric_core.statistics.comparison import ChangeOutcome
from tasks.comparison.run_comparison import RunComparison
from tasks.comparison.run_pair import Matching
from tasks.history.catalogue import Catalogue
from tasks.history.recorded_run import RecordedRun
from tasks.reports.comparison.comparison_page import comparison_page
from tasks.reports.comparison.comparison_text import comparison_markdown
from tasks.runs.baselines import Baseline, Baselines
from tasks.runs.finished_run import FinishedRun
from tasks.runs.outcome import Outcome, OutcomeBaseline, OutcomeIncident, OutcomeIncidents, write_outcome
from tasks.runs.run_folder import COMPARISON, REPORT
from tasks.runtime.atomic_files import write_output

Verdict: TypeAlias = Literal["accepted", "passed", "inconclusive", "failed", "worse", "superseded"]

_RUNS_READ = 366 * 24
"""Runs of the history that are looked at: a year of hourly ones."""
_BAD: tuple[Verdict, ...] = ("failed", "inconclusive", "worse")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainResult:
    """The result of a monitored run.

    Args:
        verdict: Accepted: the run is the baseline. Passed: nothing is wrong, and the baseline stays. Inconclusive or
            failed: the outcome of the gate. Worse: an alarm stands. Superseded: a newer version is the baseline.
        message: The result in words.
        folder: Run folder; None if nothing was evaluated.
        baseline: Version of the baseline before the run; None without one.
    """

    verdict: Verdict
    message: str
    folder: Path | None = None
    baseline: str | None = None


def run_chain(config: RunConfig, watched: Watched, evaluate: Callable[[Path | None], Path]) -> ChainResult:
    """Evaluate a run and do what follows from its scores.

    Args:
        config: Configuration of the run.
        watched: Subject of the run.
        evaluate: Function that evaluates the data, given the run folder of the baseline, and returns the run folder.

    Raises:
        AssayError: The data cannot be evaluated, or the store of baselines cannot be used.
    """
    store = Baselines(config.deploy.baselines, watched.deployment)
    before = store.current(watched.key)
    if _is_superseded(watched, before):
        return _report_superseded(watched, before)
    folder = evaluate(_find_folder(store, before)[0])
    before = store.current(watched.key)  # another run may have been accepted meanwhile
    if _is_superseded(watched, before):
        return _report_superseded(watched, before, folder)
    return _Chain(config, watched, store, folder).finish(before)


@dataclass(frozen=True, slots=True)
class _Chain:
    """The steps after the evaluation of a run.

    Args:
        config: Configuration of the run.
        watched: Subject of the run.
        store: Store of baselines.
        folder: Run folder.
    """

    config: RunConfig
    watched: Watched
    store: Baselines
    folder: Path

    def finish(self, before: Baseline | None) -> ChainResult:
        """Compare the run with its baseline, accept it or alert, and write the outcome.

        Args:
            before: Baseline of the run; None if it has none.
        """
        runs, run_id = self._read_runs(), FinishedRun(self.folder).run_id
        judged, alarms = self._judge(before), self._find_alarms(before, runs)
        book = IncidentBook(self.config.history, self.watched.name)
        known = book.read()
        of_gate = find_gate_incidents(judged, [incident.key for incident in known], run_id)
        of_night = find_night_incidents(self.config, self.watched, self.folder, run_id)
        of_judges = find_judge_incidents(self.folder, run_id)
        found = (*of_gate.found, *alarms.incidents(run_id), *of_judges, *of_night)
        is_over = partial(_is_over, judged, alarms)
        incidents = change_incidents(known, found, is_over, of_gate.replaced)
        verdict = _decide(judged, alarms)
        wants_acceptance = verdict == "passed" and (self.watched.index or self.config.deploy.accept == "passed")
        accepted = False
        if before is None or wants_acceptance:
            accepted = self.store.accept(self.watched.baseline(self.folder, "first" if before is None else "passed"))
            if not accepted:
                return _report_superseded(self.watched, self.store.current(self.watched.key), self.folder)
            verdict = "accepted" if verdict == "passed" else verdict
        seen = _Seen(judged, alarms, incidents)
        alert = self._alert(seen, verdict, before)
        must_tell = bool(incidents.opened or incidents.recovered or (self.watched.index and verdict in _BAD))
        told = not must_tell or send(alert, self.config.deploy.alerts).is_received
        book.write(incidents, of_gate.replaced, run_id, told=told)
        message = alert.text if verdict in _BAD else self._praise(verdict, judged, before)
        outcome = Outcome(
            name=self.watched.name,
            trigger=self.watched.trigger,
            index=self.watched.index,
            version=self.watched.version,
            baseline=None if before is None else self._describe(before),
            gate=judged.gate,
            checks=judged.checks,
            alarms=alarms.alarms,
            alarm_state=alarms.state,
            changes=alarms.changes,
            diagnosis=judged.diagnosis,
            since_last=self._compare_with_last(runs, before),
            accepted=accepted,
            message=message,
            incidents=incidents,
            baselines=self.config.deploy.baselines,
        )
        self._record(outcome)
        version = None if before is None else before.version
        return ChainResult(verdict=verdict, message=message, folder=self.folder, baseline=version)

    def _read_runs(self) -> list[RecordedRun]:
        """Return the monitored runs before this one, oldest first; none if the history cannot be read."""
        own = FinishedRun(self.folder).run_id
        try:
            recorded = Catalogue(self.config.history).runs(self.watched.name, last=_RUNS_READ)
        except AssayError as error:
            get_run_logger().warning("alarms need the nights before, which are not known: %s", error)
            return []
        return [run for run in recorded if run.run_id != own and run.outcome is not None and run.status == "completed"]

    def _find_alarms(self, before: Baseline | None, runs: Sequence[RecordedRun]) -> NightAlarms:
        """Look for metrics that have become worse than the baseline; versions of an index are gated one by one."""
        baseline, _ = _find_folder(self.store, before)
        if baseline is None or self.watched.index:
            return NightAlarms()
        alarms = find_alarms(self.config, baseline, self.folder, runs)
        for warning in alarms.warnings:
            get_run_logger().warning(warning)
        return alarms

    def _compare_with_last(self, runs: Sequence[RecordedRun], before: Baseline | None) -> tuple[str, ...]:
        """Return sentences on the metrics that differ significantly from those of the run before."""
        if not runs or before is None or self.watched.index or runs[-1].folder == before.folder:
            return ()
        options = CompareOptions(matching=Matching(self.config.deploy.match))
        try:
            compared = compare_runs(Path(runs[-1].folder), self.folder, options)
        except AssayError:  # it was pruned, or has other rows
            return ()
        moved = (ChangeOutcome.WORSE, ChangeOutcome.BETTER)
        return tuple(describe_change(metric) for metric in compared.metrics if metric.verdict in moved)

    def _judge(self, before: Baseline | None) -> Judged:
        """Compare the run with its baseline by the gate, and write the comparison page to the run folder."""
        if before is None and self.watched.index:
            return Judged()  # the first version is what later ones are compared with
        baseline, obstacle = _find_folder(self.store, before)
        matching = Matching(match=self.config.deploy.match)
        judged = judge_run(self._gate(), baseline, self.folder, matching)
        if obstacle is None and judged.obstacle is None and judged.comparison is not None and not self.watched.index:
            obstacle = describe_unlike(judged.comparison, self.folder)
        if obstacle is not None:
            judged = judged.with_obstacle(obstacle)
        if judged.comparison is not None and judged.is_compared:
            self._publish(judged.comparison)
        return judged

    def _gate(self) -> GateSettings | None:
        """Return the rules: without any, only acceptance needs some, because alarms watch a baseline that stays."""
        if self.config.deploy.gate is not None:
            return self.config.deploy.gate
        accepts = self.watched.index or self.config.deploy.accept == "passed"
        return default_gate() if accepts else None

    def _publish(self, comparison: RunComparison) -> None:
        write_output(self.folder / COMPARISON, comparison_page(comparison), "the comparison")
        subject = RunSubject.of_run(self.watched.index, self.watched.version if self.watched.index else "")
        text = comparison_markdown(comparison)
        if self.config.deploy.alerts.link is not None:
            text = f"[Comparison page]({link_to(self.folder, COMPARISON, self.config.deploy.alerts)})\n\n{text}"
        about = subject.describe("Compared with its baseline")
        create_markdown_artifact(text, key=subject.key(ARTIFACT), description=about)

    def _alert(self, seen: "_Seen", verdict: Verdict, before: Baseline | None) -> Alert:
        judged, incidents = seen.judged, seen.incidents
        page = COMPARISON if judged.is_compared else REPORT
        worse = [incident.sentence for incident in incidents.opened]
        if self.watched.index:
            worse += (sentence for sentence in judged.refusals() if sentence not in worse)
        if self.watched.index or any(incident.kind == "gate" for incident in incidents.opened):
            worse += judged.worse_metrics()
        if incidents.opened:
            worse += seen.alarms.changes
        if worse and judged.diagnosis is not None:
            worse.append(judged.diagnosis)
        return Alert(
            name=self.watched.name,
            index=self.watched.index,
            version=self.watched.version,
            outcome=_outcome_of_alert(verdict, incidents),
            worse=tuple(worse),
            recovered=tuple(incident.sentence for incident in incidents.recovered),
            continuing=() if self.watched.index else tuple(map(_since, incidents.continuing)),
            baseline=None if before is None or verdict == "accepted" else before.version,
            folder=str(self.folder),
            report=link_to(self.folder, page, self.config.deploy.alerts),
            flow_run=str(flow_run.id),
        )

    def _praise(self, verdict: Verdict, judged: Judged, before: Baseline | None) -> str:
        """Return the message of a run in which nothing is wrong."""
        subject = "version" if self.watched.index else "the run of"
        if before is None:
            why = "it is the first version" if self.watched.index else "it is the first run"
        else:
            passed = "it passed the gate against" if judged.gate is not None else "it is not worse than"
            why = f"{passed} {subject} {before.version}"
        if verdict == "accepted":
            whose = f"index {self.watched.index}" if self.watched.index else self.watched.name
            return f"{self.watched.title} is now the baseline of {whose}: {why}"
        return f"nothing is wrong with {self.watched.title}: {why}, which stays the baseline"

    def _describe(self, before: Baseline) -> OutcomeBaseline:
        folder, _ = _find_folder(self.store, before)
        run_id = before.run_id if folder is None else FinishedRun(folder).run_id
        return OutcomeBaseline(run_id=run_id, folder=str(folder or before.folder), version=before.version)

    def _record(self, outcome: Outcome) -> None:
        write_outcome(self.folder, outcome)
        for warning in record_in_history(self.config.history, self.folder):
            get_run_logger().warning(warning)


@dataclass(frozen=True, slots=True)
class _Seen:
    """Everything that is wrong with a run.

    Args:
        judged: The run, compared with its baseline and checked against the gate.
        alarms: Alarms of the sequential tests.
        incidents: Changes of the incidents.
    """

    judged: Judged
    alarms: NightAlarms
    incidents: OutcomeIncidents


def _find_folder(store: Baselines, baseline: Baseline | None) -> tuple[Path | None, str | None]:
    """Return the run folder of a baseline on this machine, and why there is none although there is a baseline."""
    if baseline is None:
        return None, None
    try:
        return store.run_folder(baseline), None
    except AssayError as error:
        return None, str(error)


def _is_superseded(watched: Watched, before: Baseline | None) -> bool:
    return before is not None and (_is_same_version(watched, before) or before.place.is_newer_than(watched.place))


def _is_same_version(watched: Watched, baseline: Baseline) -> bool:
    """Return whether the baseline is of the same event: runs about no index are all different."""
    return bool(watched.index) and baseline.place == watched.place


def _report_superseded(watched: Watched, newer: Baseline | None, folder: Path | None = None) -> ChainResult:
    whose = f"index {watched.index}" if watched.index else watched.name
    by = "a newer baseline" if newer is None else f"its baseline, {_name_version(watched, newer)}"
    is_same = newer is not None and _is_same_version(watched, newer)
    message = f"{watched.title} of {whose} is {'its baseline already' if is_same else f'older than {by}'}"
    return ChainResult(
        verdict="superseded", message=message, folder=folder, baseline=None if newer is None else newer.version
    )


def _name_version(watched: Watched, baseline: Baseline) -> str:
    return f"version {baseline.version}" if watched.index else f"the run of {baseline.version}"


def _decide(judged: Judged, alarms: NightAlarms) -> Verdict:
    """Return the verdict about a run before it is accepted."""
    if judged.gate == "failed":
        return "failed"
    if alarms.alarms:
        return "worse"
    return "inconclusive" if judged.gate == "inconclusive" or judged.obstacle is not None else "passed"


def _is_over(judged: Judged, alarms: NightAlarms, incident: OutcomeIncident) -> bool:
    """Return whether an incident that a finished run did not find is over."""
    if incident.kind == "gate" and judged.obstacle is not None:
        return incident.key in judged.passed_keys  # other rules could not be applied
    return incident.kind != "alarm" or alarms.obstacle is None


def _outcome_of_alert(
    verdict: Verdict, incidents: OutcomeIncidents
) -> Literal["failed", "inconclusive", "worse", "attention", "recovered"]:
    if verdict in ("failed", "inconclusive", "worse"):
        return verdict
    return "attention" if incidents.is_open or not incidents.recovered else "recovered"


def _since(incident: OutcomeIncident) -> str:
    return f"{incident.sentence} (since {incident.since:%Y-%m-%d %H:%M})"
