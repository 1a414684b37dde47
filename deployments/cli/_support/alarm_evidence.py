"""Print the numbers behind the alarms of a monitored run."""

import json
from collections.abc import Sequence

from deployments.cli._support.console import stdout
from deployments.cli._support.print_document import print_table
from metric_core.statistics.run_panel import Stream
from tasks.documents.blocks import Table, Tone, make_table, own
from tasks.history.alarm_explanation import AlarmExplanation, RunEvidence
from tasks.record.outcome import OutcomeAlarm


def print_evidence(found: AlarmExplanation, alarms: Sequence[OutcomeAlarm], as_json: bool) -> None:
    """Print the runs that were read and left out, and the evidence after each.

    Args:
        found: The numbers.
        alarms: Alarms of the run; their metrics are shown, or the metric with most evidence if there are none.
        as_json: Print the evidence of all metrics and slices as JSON.
    """
    if as_json:
        streams = [
            {"metric": stream.metric, "slice": _slice(stream), "runs": list(map(_entry, runs))}
            for stream, runs in found.streams.items()
        ]
        content = {"threshold": found.threshold, "number": found.number, "runs_per_year": found.runs_per_year}
        more = {"left_out": list(found.left_out), "unwatched": dict(found.untested), "streams": streams}
        stdout.print_json(json.dumps({**content, **more, "shared_noise": dict(found.shared_noise)}))
        return
    for alarm in alarms:
        stdout.print(alarm.sentence, style="bold")
    if not alarms:
        stdout.print("no alarm is open after this run", style="bold")
    named = [(alarm.metric, alarm.slice) for alarm in alarms]
    shown = [stream for stream in found.streams if (stream.metric, _slice(stream)) in named]
    for stream in shown or list(found.streams)[:1]:
        stdout.print()
        print_table(stdout, _table(stream, found.streams[stream], found.threshold))
    stdout.print()
    stdout.print(
        f"an alarm is raised at an evidence of {found.threshold:g} (metrics and slices tested: {len(found.streams)}); "
        f"this is run {found.number} of its year, and {found.runs_per_year} are expected",
    )
    for sentence in found.left_out:
        stdout.print(f"left out: {sentence}")
    for metric, noise in found.shared_noise.items():
        stdout.print(f"noise that all rows of a run may share: {metric}, standard deviation {noise:.2g} of its range")
    for metric, reason in found.untested.items():
        stdout.print(f"not tested: {metric}, {reason}")


def _table(stream: Stream, runs: Sequence[RunEvidence], threshold: float) -> Table:
    title = stream.metric if stream.slice is None else f"{stream.metric} of {stream.slice}"
    rows = []
    for run in runs:
        change = "-" if run.change is None else f"{run.change:+.3f}"
        evidence = f"{run.evidence:,.0f}" if run.evidence >= 100 else f"{run.evidence:.2g}"
        tone = Tone.BAD if run.evidence >= threshold else Tone.PLAIN
        cells = (f"{run.started:%Y-%m-%d %H:%M}", f"{run.rows:,}", change, evidence)
        rows.append([own(cell, tone) for cell in cells])
    return make_table((title, "rows", "mean change", "evidence"), rows)


def _entry(run: RunEvidence) -> dict[str, object]:
    started = run.started.isoformat(timespec="seconds")
    return {"started": started, "rows": run.rows, "change": run.change, "evidence": run.evidence}


def _slice(stream: Stream) -> dict[str, str] | None:
    return None if stream.slice is None else {stream.slice.column: stream.slice.value}
