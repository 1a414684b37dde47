"""Word the findings of a monitored run: the alert about what has changed, and the message about what is open."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

from flows.alerting.alert import Alert, Subject
from flows.config.result_options import MonitoringOptions
from flows.monitoring.gating import GatedRun
from flows.monitoring.incidents import MISSED, alert_incidents, subject_of_alert
from flows.monitoring.monitored_run import MonitoredRun
from flows.monitoring.monitored_run_alarms import RunAlarms
from flows.monitoring.source_checks import describe_missing
from tasks.findings.finding import RunRecords
from tasks.findings.table import cautions_of
from tasks.record.outcome import OutcomeIncidents
from tasks.runs.baselines import Baseline
from tasks.runs.finished_run import FinishedRun
from tasks.runs.run_folder import COMPARISON, REPORT

Verdict: TypeAlias = Literal["accepted", "passed", "recovering", "inconclusive", "failed", "worse", "superseded"]

_SUBJECTS: Mapping[Verdict, Subject] = {"failed": "failed", "inconclusive": "inconclusive", "worse": "worse"}
"""Subjects of messages about the state after a run, by the verdicts with which something is wrong."""


@dataclass(frozen=True, slots=True)
class Findings:
    """Everything that a run has found.

    Args:
        before: Baseline of the run; None if it has none.
    """

    options: MonitoringOptions
    monitored_run: MonitoredRun
    folder: Path
    before: Baseline | None
    gated: GatedRun
    alarms: RunAlarms
    incidents: OutcomeIncidents
    verdict: Verdict

    def alert(self, flow_run: str) -> Alert | None:
        """Return the alert about what has changed, or about a version that is not accepted; None without news."""
        is_refused = bool(self.monitored_run.index) and self.verdict in _SUBJECTS
        changed = (self.incidents.opened, self.incidents.recovered, self.incidents.replaced)
        if not (any(changed) or is_refused):
            return None
        return self._about(flow_run)

    @property
    def message(self) -> str:
        """The state after the run, in words."""
        if (subject := _SUBJECTS.get(self.verdict)) is not None:
            return replace(self._about(), outcome=subject).text
        open_kinds = {each.kind for each in (*self.incidents.opened, *self.incidents.continuing)} - {MISSED}
        if self.verdict != "accepted" and open_kinds - ({"alarm"} if self.verdict == "recovering" else set()):
            return replace(self._about(), outcome="attention").text
        missed = (each.sentence for each in self.incidents.opened if each.kind == MISSED)
        return "; ".join([self._praise(), *self._limits(), *missed])

    def _limits(self) -> Iterator[str]:
        """Yield sentences on what the comparison with the baseline could not see."""
        kept = self.gated.kept
        if kept is not None and kept.rows[0] < kept.rows[1]:
            missing = describe_missing(kept)
            yield f"{kept.rows[0]} of the {kept.rows[1]} rows of the baseline are compared" + (
                f", the others are missing{missing}" if missing else ""
            )
        if self.alarms.margin and self.verdict == "passed":
            yield self.alarms.margin

    def _cautions(self) -> Iterator[str]:
        """Yield the warnings of findings, which hold whatever the run is compared with."""
        run = FinishedRun(self.folder)
        for caution in cautions_of(RunRecords(run.record, run.summary, run.folder)):
            yield f"{caution.title}: {' '.join((caution.sentence, *caution.reasons))}"

    def _about(self, flow_run: str = "") -> Alert:
        gated, incidents = self.gated, self.incidents
        is_refused = bool(self.monitored_run.index) and self.verdict in _SUBJECTS
        opened = [incident.sentence for incident in incidents.opened]
        notes: list[str] = []
        if self.monitored_run.index:
            notes += (sentence for sentence in gated.refusals() if sentence not in opened)
        if self.monitored_run.index or any(incident.kind == "gate" for incident in incidents.opened):
            notes += gated.worse_metrics()
        if incidents.opened:
            notes += self.alarms.changes
        if opened or notes:
            notes = [*self._cautions(), *notes, *gated.notes]
        if self.monitored_run.index and (opened or notes) and gated.judgments is not None:
            notes.append(gated.judgments)
        return Alert(
            name=self.monitored_run.name,
            index=self.monitored_run.index,
            version=self.monitored_run.version,
            outcome=_SUBJECTS[self.verdict] if is_refused else subject_of_alert(incidents),
            incidents=alert_incidents(self.monitored_run.name, incidents, with_continuing=not is_refused),
            opening=gated.opening if opened or notes else (),
            notes=tuple(notes),
            baseline=None if self.before is None or self.verdict == "accepted" else self.before.version,
            folder=str(self.folder),
            report=self.options.deploy.alerts.link_to(self.folder, COMPARISON if gated.is_compared else REPORT),
            flow_run=flow_run,
        )

    def _praise(self) -> str:
        """Return the message of a run in which nothing is wrong."""
        subject = "version" if self.monitored_run.index else "the run of"
        if self.before is None:
            why = "it is the first version" if self.monitored_run.index else "it is the first run"
        else:
            passed = "it passed the gate against" if self.gated.gate is not None else "it is not worse than"
            why = f"{passed} {subject} {self.before.version}"
        if self.verdict == "accepted":
            whose = f"index {self.monitored_run.index}" if self.monitored_run.index else self.monitored_run.name
            return f"{self.monitored_run.title} is now the baseline of {whose}: {why}"
        if self.verdict == "recovering":
            return f"nothing is wrong with {self.monitored_run.title}; another such run ends the alarm"
        return f"nothing is wrong with {self.monitored_run.title}: {why}, which stays the baseline"
