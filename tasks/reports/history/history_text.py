"""Describe the history of an evaluation in words and tables, for terminals and as JSON."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from tasks.documents.blocks import Table, make_table
from tasks.documents.run.summary_rows import LOWER_IS_BETTER
from tasks.findings.standing import Standing
from tasks.findings.table import find_in
from tasks.history import recorded_run as keys
from tasks.history.availability import Availability
from tasks.history.incident import Incident
from tasks.history.recorded_run import KeptQuestions, RecordedMetric, RecordedRun, VersionChange, find_changes_between
from tasks.runs.judge_roles import name_questions
from tasks.runtime.wording import format_percent

VERSION_WORDS: Mapping[str, str] = {
    keys.SYSTEM: "system",
    keys.INDEX: "index",
    keys.DATA: "questions and references",
    keys.JUDGE: "judge",
    keys.SERVED: "model that the judge's server has",
    keys.JUDGED: "the judge's answers to the same questions",
    keys.CERTIFIED: "the faults in the judge's certificate",
    keys.PROMPTS: "prompts",
    keys.ASKED: "judge settings",
    keys.EMBEDDER: "embedder",
    keys.FORMULAS: "code of the formulas",
    keys.SOFTWARE: "rag-assay",
}
"""Words for the versions of a run."""

OTHER_QUESTIONS = "* has other questions than the run before: the means of the two are not of the same rows"
"""Explanation of the mark in the heading of a run."""

_GATES = {"passed": "passed", "failed": "gate failed", "inconclusive": "inconclusive"}


def describe_outcome(run: RecordedRun) -> str:
    """Return the outcome of a run in a few words.

    >>> from datetime import UTC
    >>> start = datetime(2026, 3, 1, tzinfo=UTC)
    >>> describe_outcome(RecordedRun("1", "nightly", start, "runs/1", "failed"))
    'did not finish'
    >>> describe_outcome(RecordedRun.without_results("1", "nightly", start, "failed", "no such file", "schedule"))
    'did not start'
    """
    if run.status == keys.STOPPED:
        return "budget spent"
    if run.status == keys.MISSED:
        return "missed"
    if run.status != keys.COMPLETED:
        return "did not finish" if run.folder else "did not start"
    words = ["too few scores"] if run.failures else []
    words += ["not judged"] if run.reason else []
    if run.outcome is not None:
        words += [_GATES[run.outcome.gate]] if run.outcome.gate is not None else []
        words += ["alarm"] if run.outcome.alarms else []
        words += ["accepted"] if run.outcome.accepted else []
    return ", ".join(words) or "finished"


def describe_version_change(change: VersionChange) -> str:
    """Return a change of a version in words.

    >>> describe_version_change(VersionChange("judge", "llama 1", "llama 2"))
    'judge: llama 1 -> llama 2'
    >>> describe_version_change(VersionChange("data", "a", "b"))
    'questions and references changed'
    >>> describe_version_change(VersionChange("prompts", "0.1", "0.2", ("claims", "verdict")))
    "prompts of the questions 'claims' and 'verdict' changed between rag-assay 0.1 and 0.2"
    >>> describe_version_change(VersionChange("rag_assay", "0.1", "0.2", is_comparable=True))
    'rag-assay: 0.1 -> 0.2, with the same prompts, judge and formulas: the scores are comparable'
    """
    what = VERSION_WORDS[change.what]
    between = f" between rag-assay {change.before} and {change.after}" if change.before != change.after else ""
    if change.what == keys.PROMPTS:
        return f"prompt{'s' * (len(change.kinds) > 1)} of the {name_questions(change.kinds)} changed{between}"
    if change.what == keys.FORMULAS:
        return f"{what} changed{between}"
    if not change.before:
        return f"{what} changed ({change.after})"
    if change.kept is not None:
        return f"{what} changed: {describe_kept(change.kept)}"
    if change.what in (keys.DATA, keys.SERVED):
        return f"{what} changed"  # the versions are digests, which tell nothing
    comparable = ", with the same prompts, judge and formulas: the scores are comparable" * change.is_comparable
    return f"{what}: {change.before} -> {change.after}{comparable}"


def describe_kept(kept: KeptQuestions) -> str:
    """Return in words what a run shares with the run before it, and the figures of both over that.

    >>> describe_kept(KeptQuestions("1", "2026-03-01T06:00", 24, 1, 9, 7, 5, {}))
    '24 as in the run of 2026-03-01 06:00, 1 changed, 9 gone (7 retired), 5 new'
    >>> figures = {"key_point_recall": (0.7, 0.68), "key points lost by the index": (2, 4)}
    >>> describe_kept(KeptQuestions("1", "2026-03-01T06:00", 24, 0, 7, 7, 0, figures))[36:]
    ', 7 retired; over the 24: key_point_recall 0.700 -> 0.680, key points lost by the index 2 -> 4'
    """
    parts = [f"{kept.rows:,} as in the run of {format_time(datetime.fromisoformat(kept.created))}"]
    parts += [f"{kept.changed:,} changed"] if kept.changed else []
    if kept.gone:
        some = f" ({kept.retired:,} retired)" if kept.retired else ""
        parts.append(f"{kept.gone:,} retired" if kept.retired == kept.gone else f"{kept.gone:,} gone{some}")
    parts += [f"{kept.new:,} new"] if kept.new else []
    moved = [f"{name} {_figure(before)} -> {_figure(after)}" for name, (before, after) in kept.figures.items()]
    return f"{', '.join(parts)}" + (f"; over the {kept.rows:,}: {', '.join(moved)}" if moved else "")


def _figure(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.3f}"


def choose_metrics(runs: Sequence[RecordedRun]) -> list[str]:
    """Return the metrics over all rows, those of the latest run first; those without any value are left out.

    Args:
        runs: Runs, oldest first.
    """
    found = dict.fromkeys(
        metric.metric
        for run in reversed(runs)
        for metric in run.metrics
        if not metric.slice_column and metric.mean is not None
    )
    return list(found)


def table_of_runs(runs: Sequence[RecordedRun]) -> Table:
    """Return a table of runs.

    Args:
        runs: Runs, oldest first.
    """
    headings = ("started", "outcome", "rows", "failed", "seconds")
    return make_table(headings, map(_row, runs), headings[2:])


def table_of_metrics(runs: Sequence[RecordedRun], metrics: Sequence[str]) -> Table:
    """Return a table of the means of metrics, a column per run.

    Args:
        runs: Runs, oldest first.
    """
    means = [{metric.metric: metric for metric in run.metrics if not metric.slice_column} for run in runs]
    directions = {metric.metric: metric.direction for run in runs for metric in run.metrics}
    marks = {key: f" {LOWER_IS_BETTER}" if directions.get(key) == "lower" else "" for key in metrics}
    headings = ["mean of", *_start_times(runs)]
    rows = [[f"{key}{marks[key]}", *(_mean(found.get(key)) for found in means)] for key in metrics]
    return make_table(headings, rows)


def table_of_findings(runs: Sequence[RecordedRun]) -> Table | None:
    """Return a table of counts of findings, such as key points, a column per run; None if no run has any.

    Args:
        runs: Runs, oldest first.
    """
    kept = [run.details for run in runs]
    found = [finding.history_rows(kept) for finding in find_in(kept) if finding.history_rows is not None]
    rows = [
        [words, *("-" if count is None else f"{count:,}" for count in counts)]
        for each in found
        for words, counts in each.items()
    ]
    return make_table(["", *_start_times(runs)], rows) if rows else None


def _start_times(runs: Sequence[RecordedRun]) -> list[str]:
    return [f"{'*' * (run.kept is not None)}{run.created:%m-%d %H:%M}" for run in runs]


def _row(run: RecordedRun) -> list[str]:
    seconds = run.cost.seconds
    return [
        format_time(run.created),
        describe_outcome(run),
        f"{run.rows:,}" if run.status == keys.COMPLETED else "-",
        format_share(failed_share([metric for metric in run.metrics if not metric.slice_column])),
        "-" if seconds is None else f"{seconds:,.0f}",
    ]


def _mean(metric: RecordedMetric | None) -> str:
    return "-" if metric is None or metric.mean is None else f"{metric.mean:.3f}"


def failed_share(metrics: Any) -> float | None:
    """Return the share of the cells of metrics that failed; None without cells."""
    counts = [(each.failed, each.scored + each.undefined + each.failed) for each in metrics]
    cells = sum(all_cells for _, all_cells in counts)
    return sum(failed for failed, _ in counts) / cells if cells else None


def format_share(share: float | None) -> str:
    """Return a share as a percentage.

    >>> format_share(0.004), format_share(0.0), format_share(None)
    ('0.4 %', '0 %', '-')
    """
    if share is None:
        return "-"
    return format_percent(share, 1 if 0 < share < 0.1 else 0)


def format_time(time: datetime) -> str:
    """Return a time to the minute."""
    return f"{time:%Y-%m-%d %H:%M}"


def change_lines(runs: Sequence[RecordedRun]) -> Iterator[str]:
    """Yield a line for every run before which a version changed, that failed or was missed, or was not delivered.

    Args:
        runs: Runs, oldest first.
    """
    changed = find_changes_between(runs)
    for run in runs:
        if changes := changed.get(run.run_id):
            yield f"{format_time(run.created)}  {'; '.join(map(describe_version_change, changes))}"
        if run.reason:
            yield f"{format_time(run.created)}  {describe_outcome(run)}: {run.reason}"
        for sentence in run.undelivered:
            yield f"{format_time(run.created)}  not delivered: {sentence}"


def describe_incident(incident: Incident) -> str:
    """Return an incident in a line."""
    times = "" if incident.times == 1 else f", found {incident.times} times"
    return f"since {format_time(incident.opened)} UTC{times}: {incident.sentence}"


def describe_availability(availability: Availability) -> str:
    """Return the availability over some days in a line.

    >>> describe_availability(Availability(30, 27, 2, 1))
    'last 30 days: 27 of 30 scheduled runs have a result (90 %), 2 failed, 1 missed'
    """
    return (
        f"last {availability.days} days: {availability.finished} of {availability.due} scheduled runs have a result "
        f"({format_availability(availability.share)}), {availability.failed} failed, {availability.missed} missed"
    )


def format_availability(share: float | None) -> str:
    """Return an availability as a percentage, rounded down, so that only a perfect one is 100 %.

    >>> format_availability(1.0), format_availability(0.9996), format_availability(0.9), format_availability(None)
    ('100 %', '99.9 %', '90 %', '-')
    """
    return "-" if share is None else f"{math.floor(share * 1000) / 10:g} %"


def history_to_dict(
    name: str,
    runs: Sequence[RecordedRun],
    incidents: Sequence[Incident],
    availability: Sequence[Availability],
    standings: Sequence[Standing] = (),
) -> dict[str, Any]:
    """Return the history of an evaluation as JSON.

    Args:
        runs: Runs, oldest first.
        incidents: Incidents, oldest first.
    """
    changed = find_changes_between(runs)
    return {
        "name": name,
        "runs": [
            {**_run_to_dict(run), "changes": [asdict(change) for change in changed.get(run.run_id, ())]} for run in runs
        ],
        "incidents": [_with_times(asdict(incident)) for incident in incidents],
        "availability": [each.entry for each in availability],
        "standings": [{"key": each.key, "sentence": each.sentence, **each.entry} for each in standings],
    }


def _run_to_dict(run: RecordedRun) -> dict[str, Any]:
    outcome = None if run.outcome is None else run.outcome.model_dump(mode="json", exclude={"alarm_state"})
    fields = {name: getattr(run, name) for name in run.__slots__ if name not in ("outcome", "metrics", "cost")}
    return {
        **_with_times(fields),
        "versions": dict(run.versions),
        "details": run.details.to_json(),
        "cost": asdict(run.cost),
        "metrics": [asdict(metric) for metric in run.metrics],
        "outcome": outcome,
    }


def _with_times(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value.isoformat() if isinstance(value, datetime) else value for name, value in fields.items()}
