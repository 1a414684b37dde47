"""Run the steps of a monitored run: evaluate, compare with the baseline, apply the gate, then accept the run or alert.

It is the same for a schedule, an event and a person, and so are its options. The outcome is in `outcome.json` in the
run folder and in the history.

A version of an index that passes the gate becomes the baseline. Of runs about no index, the first becomes the baseline
and stays it until a person accepts another: a baseline that moves with every run hides a slow decline. With
`deploy.accept = "passed"` each run that passes becomes the baseline.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from prefect.artifacts import create_markdown_artifact

from flows.config.deploy_options import default_gate
from flows.config.gate_file import GateSettings
from flows.config.result_options import MonitoringOptions
from flows.monitoring.chain_result import ChainResult
from flows.monitoring.clock_checks import BEHIND, find_clock_incidents, is_clock_behind, keep_past, present
from flows.monitoring.gating import GatedRun, describe_metric_change, describe_unlike, find_gate_incidents, judge_run
from flows.monitoring.incidents import change_incidents
from flows.monitoring.lost_baseline import find_lost_baseline
from flows.monitoring.messages import Findings, Verdict
from flows.monitoring.monitored_run import MonitoredRun
from flows.monitoring.monitored_run_alarms import RunAlarms, find_run_alarms
from flows.monitoring.monitored_run_checks import find_judge_incidents, find_run_incidents
from flows.monitoring.reporter import Reporter
from flows.monitoring.source_checks import is_loss
from flows.monitoring.superseded import end_superseded, is_superseded, report_superseded
from flows.publishing.artifacts import COMPARISON_ARTIFACT, write_artifact
from flows.publishing.history_record import NotRecordedError, record_in_history, record_surely
from flows.publishing.metrics_file import write_metrics_file
from flows.results.gated_comparison import CompareOptions, compare_runs
from metric_core.errors import AssayError, ConfigError, RunFolderError
from metric_core.statistics.comparison import ChangeOutcome
from tasks.comparison.run_comparison import RunComparison
from tasks.comparison.run_pair import Matching, RunRows
from tasks.findings.finding import RunRecords
from tasks.findings.table import lines_of
from tasks.history.catalogue import Catalogue
from tasks.history.recorded_run import COMPLETED, RecordedRun
from tasks.history.runs_before import find_gap
from tasks.prefect_support.run_log import run_logger
from tasks.record.outcome import OutcomeBaseline, OutcomeIncident, RunOutcome
from tasks.reports.comparison.comparison_document import comparison_markdown
from tasks.reports.comparison.comparison_page import comparison_page
from tasks.runs.baselines import Baseline, Baselines
from tasks.runs.finished_run import FinishedRun
from tasks.runs.outcome_file import write_outcome
from tasks.runs.run_folder import COMPARISON, RunFolder
from tasks.runtime.atomic_files import write_output

_NOT_RECORDED, _HISTORY = "not recorded", "history"
"""Keys of the incidents that the first run could not be recorded in the history, and that this could not be read."""

_RUNS_READ = 366 * 24
"""Runs of the history that are looked at: a year of hourly ones."""


def run_chain(reporter: Reporter, monitored_run: MonitoredRun, evaluate: Callable[[Path | None], Path]) -> ChainResult:
    """Evaluate a run, compare it with its baseline, accept it or not, and report the outcome, or an error.

    Args:
        reporter: Reports the run; it has the options.
        evaluate: Function that evaluates the data, given the run folder of the baseline, and returns the run folder.

    Raises:
        AssayError: The data cannot be evaluated, or the store of baselines cannot be used.
    """
    done = _run_chain(reporter, monitored_run, evaluate)
    if done.folder is None:
        return done
    return replace(done, undelivered=(*done.undelivered, *reporter.send_results(done.folder)))


def _run_chain(reporter: Reporter, monitored_run: MonitoredRun, evaluate: Callable[[Path | None], Path]) -> ChainResult:
    store = Baselines(reporter.options.deploy.baselines, monitored_run.deployment)
    before = _read_baseline(store, reporter, monitored_run)
    if is_superseded(monitored_run, before):
        return end_superseded(reporter, monitored_run, before)
    with monitored_run.start.apply():
        folder = evaluate(_find_folder(store, before)[0])
    before = _read_baseline(store, reporter, monitored_run)  # another run may have been accepted meanwhile
    if is_superseded(monitored_run, before):
        return end_superseded(reporter, monitored_run, before, folder)
    return _Chain(reporter, monitored_run, store, folder).finish(before)


@dataclass(frozen=True, slots=True)
class _Chain:
    """The steps after the evaluation of a run."""

    reporter: Reporter
    monitored_run: MonitoredRun
    store: Baselines
    folder: Path

    @property
    def options(self) -> MonitoringOptions:
        """The options of what follows from the run."""
        return self.reporter.options

    @property
    def _matching(self) -> Matching:
        return Matching(match=self.options.deploy.match)

    def finish(self, before: Baseline | None) -> ChainResult:
        """Compare the run with its baseline, report what has changed, accept the run, and write the outcome.

        Args:
            before: Baseline of the run; None if it has none.
        """
        run_id = FinishedRun(self.folder).run_id
        runs, damage = self._read_runs(before)
        of_clock = find_clock_incidents(self.monitored_run, before, runs, run_id)
        gated, alarms = self._judge(before), self._find_alarms(before, runs)
        known = self.reporter.book.read()
        open_keys = [incident.key for incident in known]
        of_judges = find_judge_incidents(self.folder, keep_past(runs, present(self.monitored_run)))
        verdict = _decide(gated, alarms, of_judges)
        moves = bool(self.monitored_run.index) or self.options.deploy.accept == "passed"
        follows = before is not None and verdict == "passed" and moves
        of_gate = find_gate_incidents(gated, open_keys, run_id, is_accepted=follows)
        of_run = find_run_incidents(self.options, self.monitored_run, self.folder, gated, open_keys)
        # Causes first: the scores of a failing judge must not make a run acceptable.
        found = (*of_judges, *of_clock, *of_run, *of_gate.found, *alarms.incidents(run_id))
        outcome = RunOutcome(
            name=self.monitored_run.name,
            trigger=self.monitored_run.trigger,
            index=self.monitored_run.index,
            version=self.monitored_run.version,
            baseline=None if before is None else self._describe(before),
            gate=gated.gate,
            checks=gated.checks,
            alarms=alarms.alarms,
            alarm_state=alarms.state,
            steps=dict(alarms.steps),
            shared_noise=dict(alarms.shared_noise),
            changes=alarms.changes,
            diagnosis=" ".join(gated.notes) or None,
            since_last=self._compare_with_last(keep_past(runs, present(self.monitored_run)), before),
            baselines=self.options.deploy.baselines,
            kept=gated.kept,
        )
        obstacle = None
        if before is None:
            obstacle = find_lost_baseline(self.monitored_run, self.store.root, runs, run_id)
            obstacle = obstacle or self._record_first(outcome, run_id)
        if obstacle is not None:
            found = (*found, obstacle)
        elif damage is not None:
            sentence = f"alarms, open incidents and missed runs are not known: {damage}"
            now = datetime.now(UTC)
            found += (OutcomeIncident(key=_HISTORY, kind="record", sentence=sentence, since=now, run_id=run_id),)
        incidents = change_incidents(known, found, partial(_is_over, gated, alarms, damage), of_gate.replaced)
        accepts = follows or (before is None and obstacle is None)
        if verdict == "passed" and (accepts or obstacle is not None):
            verdict = "accepted" if accepts else "inconclusive"
        seen = Findings(self.options, self.monitored_run, self.folder, before, gated, alarms, incidents, verdict)
        undelivered = self.reporter.report(incidents, seen.alert(self.reporter.flow_run)).undelivered
        message = seen.message
        if accepts and not self.store.accept(
            self.monitored_run.baseline(self.folder, "first" if before is None else "passed")
        ):
            newer = self.store.current(self.monitored_run.key)
            if self.monitored_run.index:
                return report_superseded(self.monitored_run, newer, self.folder, undelivered)
            accepts, verdict = False, "inconclusive"
            message = f"{self.monitored_run.title} was compared with nothing: another first run was accepted meanwhile"
        undelivered = self.reporter.beat(undelivered)
        changes = {"accepted": accepts, "message": message, "incidents": incidents, "undelivered": undelivered}
        self._record(outcome.model_copy(update=changes))
        version = None if before is None else before.version
        return ChainResult(
            verdict=verdict, message=message, folder=self.folder, baseline=version, undelivered=undelivered
        )

    def _record_first(self, outcome: RunOutcome, run_id: str) -> OutcomeIncident | None:
        """Record a first run before it is accepted; return the incident that this is not possible.

        Later runs are compared with what is recorded of the baseline, and their rows are matched with its rows.
        """
        run = FinishedRun(self.folder)
        try:
            write_outcome(self.folder, outcome)
            record_surely(self.options.history, self.folder)
            lacks = "; ".join(lines_of(RunRecords(run.record, run.summary, run.folder), "lacks"))
            if self._matching.match is not None:
                RunRows.from_run(run, self._matching)
        except (ConfigError, NotRecordedError, RunFolderError) as error:
            lacks = str(error)
        if not lacks:
            return None
        sentence = f"the first run does not become the baseline: {lacks}"
        return OutcomeIncident(
            key=_NOT_RECORDED, kind="record", sentence=sentence, since=datetime.now(UTC), run_id=run_id
        )

    def _read_runs(self, before: Baseline | None) -> tuple[list[RecordedRun], str | None]:
        """Return the monitored runs before this one, oldest first, and why the history does not have all, if so."""
        own = FinishedRun(self.folder).run_id
        baseline, _ = _find_folder(self.store, before)
        recorded: list[RecordedRun] = []
        try:
            history = Catalogue(self.options.history)
            recorded = history.runs(self.monitored_run.name, last=_RUNS_READ, statuses=(COMPLETED,))
            accepted = [] if baseline is None else [FinishedRun(baseline)]
            damage = find_gap(history, self.options.history, accepted) or None
        except AssayError as error:
            damage = str(error)
        if damage is not None:
            run_logger().warning("alarms need the earlier runs, which are not known: %s", damage)
        return [run for run in recorded if run.run_id != own and run.outcome is not None], damage

    def _find_alarms(self, before: Baseline | None, runs: Sequence[RecordedRun]) -> RunAlarms:
        """Look for metrics that have become worse than the baseline; versions of an index are gated one by one."""
        baseline, _ = _find_folder(self.store, before)
        if baseline is None or self.monitored_run.index:
            return RunAlarms()
        if is_clock_behind(runs, present(self.monitored_run)):
            alarms = RunAlarms(obstacle=BEHIND)  # alarms that are open stay so
        else:
            alarms = find_run_alarms(self.options, baseline, self.folder, runs)
        for warning in alarms.warnings:
            run_logger().warning(warning)
        return alarms

    def _compare_with_last(self, runs: Sequence[RecordedRun], before: Baseline | None) -> tuple[str, ...]:
        """Return sentences on the metrics that differ significantly from those of the run before."""
        if not runs or before is None or self.monitored_run.index or runs[-1].folder == before.folder:
            return ()
        options = CompareOptions(matching=self._matching)
        try:
            compared = compare_runs(Path(runs[-1].folder), self.folder, options)
        except AssayError as error:  # it was pruned, or has other rows
            run_logger().info("the run is not compared with the one before it: %s", error)
            return ()
        moved = (ChangeOutcome.WORSE, ChangeOutcome.BETTER)
        return tuple(describe_metric_change(metric) for metric in compared.metrics if metric.verdict in moved)

    def _judge(self, before: Baseline | None) -> GatedRun:
        """Compare the run with its baseline by the gate, and write the comparison page to the run folder."""
        is_first = before is None and self.monitored_run.index  # later versions are compared with it
        baseline, obstacle = _find_folder(self.store, before)
        gated = judge_run(None if is_first else self._gate(), baseline, self.folder, self._matching)
        if (
            obstacle is None
            and gated.obstacle is None
            and gated.comparison is not None
            and not self.monitored_run.index
        ):
            obstacle = describe_unlike(gated.comparison, self.folder)
        if obstacle is not None:
            gated = gated.with_obstacle(obstacle)
        if gated.comparison is not None and gated.is_compared:
            self._publish(gated.comparison)
        return gated

    def _gate(self) -> GateSettings | None:
        """Return the rules of the gate; without any, the default ones if runs that pass are accepted.

        A baseline that stays needs none: alarms compare runs with it.
        """
        if self.options.deploy.gate is not None:
            return self.options.deploy.gate
        accepts = self.monitored_run.index or self.options.deploy.accept == "passed"
        return default_gate() if accepts else None

    def _publish(self, comparison: RunComparison) -> None:
        write_output(self.folder / COMPARISON, comparison_page(comparison), "the comparison")
        subject = self.monitored_run.subject
        text = comparison_markdown(comparison)
        if self.options.deploy.alerts.link is not None:
            text = f"[Comparison page]({self.options.deploy.alerts.link_to(self.folder, COMPARISON)})\n\n{text}"
        about = subject.describe("Compared with its baseline")
        write_artifact(
            COMPARISON_ARTIFACT,
            lambda: create_markdown_artifact(text, key=subject.key(COMPARISON_ARTIFACT), description=about),
        )

    def _describe(self, before: Baseline) -> OutcomeBaseline:
        folder, _ = _find_folder(self.store, before)
        run_id = before.run_id if folder is None else FinishedRun(folder).run_id
        return OutcomeBaseline(run_id=run_id, folder=str(folder or before.folder), version=before.version)

    def _record(self, outcome: RunOutcome) -> None:
        write_outcome(self.folder, outcome)
        monitored_run, run = self.monitored_run, RunFolder(self.folder)
        unrecorded = record_in_history(self.options.history, self.folder)
        for warning in (*unrecorded, *write_metrics_file(self.options, monitored_run.name, monitored_run.subject, run)):
            run_logger().warning(warning)


def _read_baseline(store: Baselines, reporter: Reporter, monitored_run: MonitoredRun) -> Baseline | None:
    """Return the baseline before the run; a run that is resumed after its version was accepted is compared again."""
    accepted = store.current(monitored_run.key)
    if accepted is None or not monitored_run.index or accepted.run_id != reporter.flow_run:
        return accepted
    earlier = [each for each in store.acceptances(monitored_run.key) if each.run_id != accepted.run_id]
    return earlier[-1] if earlier else None


def _find_folder(store: Baselines, baseline: Baseline | None) -> tuple[Path | None, str | None]:
    """Return the run folder of a baseline on this machine, and why there is none although there is a baseline."""
    if baseline is None:
        return None, None
    try:
        folder = store.run_folder(baseline)
        next(FinishedRun(folder).samples(), None)  # the evaluation reads them, too
    except RunFolderError as error:
        return None, f"{error}. Restore it, or accept another run as the baseline: assay accept RUN"
    except AssayError as error:
        return None, str(error)
    return folder, None


def _decide(gated: GatedRun, alarms: RunAlarms, of_judges: Collection[OutcomeIncident]) -> Verdict:
    """Return the verdict about a run before it is accepted: one by a judge that has changed is not like for like."""
    if gated.gate == "failed":
        return "failed"
    if alarms.is_worse:
        return "worse"
    if (
        gated.gate == "inconclusive"
        or gated.obstacle is not None
        or gated.losses
        or of_judges
        or alarms.obstacle == BEHIND
    ):
        return "inconclusive"
    return "recovering" if alarms.alarms else "passed"


def _is_over(gated: GatedRun, alarms: RunAlarms, damage: str | None, incident: OutcomeIncident) -> bool:
    """Return whether an incident that a finished run did not find is over.

    Args:
        damage: Reason why the earlier runs are not known, which alarms are computed from; None if they are.
    """
    if incident.kind == "gate" and gated.obstacle is not None:
        return incident.key in gated.passed_keys  # other rules could not be applied
    if is_loss(incident.key) and gated.obstacle is not None:
        return gated.kept is not None
    return incident.kind != "alarm" or (alarms.obstacle is None and damage is None)
