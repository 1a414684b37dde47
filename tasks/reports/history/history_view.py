"""Describe the history of an evaluation for its page: numbers in columns, which take little space."""

import json
import os
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tasks.findings.table import find_in
from tasks.history import recorded_run as keys
from tasks.history.incident import Incident
from tasks.history.recorded_run import RecordedMetric, RecordedRun, find_changes_between
from tasks.record.record_files import read_header
from tasks.reports.history.history_text import (
    VERSION_WORDS,
    describe_outcome,
    describe_version_change,
)
from tasks.runs.run_folder import COMPARISON, MANIFEST, REPORT
from tasks.runtime.wording import shorten

SCALE = 10_000
"""Means are whole numbers of ten-thousandths in the page."""

MOST_SLICE_VALUES = 60_000
"""Greatest number of means of slices in the page; those of the oldest runs are left out beyond it."""

_GATES = {None: 0, "passed": 1, "failed": 2, "inconclusive": 3}
_LONGEST_TEXT = 400
_COSTS = ("seconds", "judge_seconds", "questions", "stored", "requests", "prompt_tokens", "output_tokens")

Links = Callable[[RecordedRun, str], str | None]
"""Function that returns the address of a page in a run's folder, or None if it is not there."""


def find_pages(page: Path) -> Links:
    """Return a function that finds pages of runs on this machine, as paths relative to the page of the history.

    A folder that a later run has written again is not the run's any more, so it has no link.
    """
    start = page.expanduser().absolute().parent

    def find(run: RecordedRun, name: str) -> str | None:
        file = Path(run.folder) / name
        if not run.folder or not file.exists() or not holds_run(Path(run.folder), run.run_id):
            return None
        try:
            return quote(Path(os.path.relpath(file, start)).as_posix())
        except ValueError:  # another drive of Windows
            return file.as_uri()

    return find


def holds_run(folder: Path, run_id: str) -> bool:
    """Return whether a folder still holds a run: a later one may have written it again."""
    header = read_header(folder / MANIFEST)
    return header is not None and header.run_id == run_id


def link_pages(template: str) -> Links:
    """Return a function that makes the addresses of pages from the URL of run folders.

    Args:
        template: URL with {folder} or {name} in it, as in the option `deploy.alerts.link`.
    """

    def link(run: RecordedRun, name: str) -> str | None:
        has_page = run.status == "completed" if name == REPORT else (Path(run.folder) / name).exists()
        if not run.folder or not has_page:
            return None
        address = template.replace("{folder}", quote(run.folder)).replace("{name}", quote(Path(run.folder).name))
        return f"{address.rstrip('/')}/{name}"

    return link


def history_view(name: str, runs: Sequence[RecordedRun], incidents: Sequence[Incident], links: Links) -> dict[str, Any]:
    """Return the content of the page's script: one list per figure, with an item per run.

    Args:
        runs: Runs, oldest first.
        incidents: Incidents, oldest first.
        links: Function that returns the address of a page in a run's folder.
    """
    places = {run.run_id: place for place, run in enumerate(runs)}
    times = [run.created for run in runs]
    return {
        "name": name,
        "scale": SCALE,
        "time": [round(run.created.timestamp()) for run in runs],
        "id": [run.run_id for run in runs],
        "folder": [run.folder for run in runs],
        "report": [links(run, REPORT) for run in runs],
        "compared": _sparse(links(run, COMPARISON) if run.outcome is not None else None for run in runs),
        "ended": [int(run.status == keys.COMPLETED) for run in runs],
        "absent": _sparse(_absence(run) for run in runs),
        "outcome": _sparse(describe_outcome(run) for run in runs),
        "gate": [0 if run.outcome is None else _GATES[run.outcome.gate] for run in runs],
        "accepted": [place for place, run in enumerate(runs) if run.outcome is not None and run.outcome.accepted],
        "baseline": [_baseline(run, places) for run in runs],
        "message": _sparse(_message(run) for run in runs),
        "alarms": _sparse(_alarms(run) for run in runs),
        "rows": [run.rows for run in runs],
        "bad_rows": [run.bad_rows for run in runs],
        "cost": {cost: [_rounded(getattr(run.cost, cost)) for run in runs] for cost in _COSTS},
        "words": dict(VERSION_WORDS),
        "versions": _version_columns(runs),
        "changes": _changes(runs),
        "kept": _sparse(_kept(run, places) for run in runs),
        "metrics": _metric_columns(runs),
        **_findings(runs),
        "slices": _slices(runs),
        "incidents": [_incident(incident, places, times) for incident in incidents],
    }


def _sparse(values: Iterable[Any]) -> dict[str, Any]:
    """Return the values that are not empty by their place."""
    return {str(place): value for place, value in enumerate(values) if value}


def _absence(run: RecordedRun) -> int:
    """Return 1 for a run that did not start, 2 for a missed one, else 0."""
    return 2 if run.status == keys.MISSED else int(run.status == keys.FAILED and not run.folder)


def _baseline(run: RecordedRun, places: Mapping[str, int]) -> int:
    """Return the place of the run that a run was compared with; -1 if there is none, or the history lacks it."""
    if run.outcome is None or run.outcome.baseline is None:
        return -1
    return places.get(run.outcome.baseline.run_id, -1)


def _message(run: RecordedRun) -> str:
    texts = [run.reason, *run.failures, run.outcome.message if run.outcome is not None else ""]
    text = shorten(" ".join(filter(None, texts)), _LONGEST_TEXT)
    return f"{text} (not delivered: {shorten('; '.join(run.undelivered), _LONGEST_TEXT)})" if run.undelivered else text


def _alarms(run: RecordedRun) -> list[dict[str, Any]]:
    found = () if run.outcome is None else run.outcome.alarms
    return [
        {
            "metric": alarm.metric,
            "slice": alarm.slice or None,
            "since": None if alarm.since is None else alarm.since.isoformat(),
            "text": shorten(alarm.sentence, _LONGEST_TEXT),
        }
        for alarm in found
    ]


def _rounded(value: float | None) -> float | int | None:
    return value if value is None or isinstance(value, int) else round(value, 1)


def _findings(runs: Sequence[RecordedRun]) -> dict[str, Any]:
    """Return what the findings of the runs draw."""
    kept = [run.details for run in runs]
    drawn = (finding.history(kept) for finding in find_in(kept) if finding.history is not None)
    return {name: columns for each in drawn for name, columns in each.items()}


def _version_columns(runs: Sequence[RecordedRun]) -> dict[str, Any]:
    """Return, per kind of version, its values and the place of each run's value among them, or -1."""
    columns: dict[str, Any] = {}
    for what in keys.CHANGES:
        values: dict[str, int] = {}
        kinds: list[Any] = []
        at = []
        for run in runs:
            version = run.versions.get(what)
            if not version:
                at.append(-1)
                continue
            text = json.dumps(version, sort_keys=True)
            if text not in values:
                values[text] = len(kinds)
                kinds.append(version)
            at.append(values[text])
        if kinds:
            columns[what] = {"values": kinds, "at": at}
    return columns


def _changes(runs: Sequence[RecordedRun]) -> dict[str, list[list[str]]]:
    """Return the changes of versions by the place of the run that was the first with them."""
    found = find_changes_between(runs)
    return _sparse(
        [[change.what, shorten(describe_version_change(change), _LONGEST_TEXT)] for change in found.get(run.run_id, ())]
        for run in runs
    )


def _kept(run: RecordedRun, places: Mapping[str, int]) -> dict[str, Any] | None:
    """Return the run before a run with other questions, and the figures of both over the questions of both."""
    if run.kept is None:
        return None
    figures = {name: [round(value, 4) for value in values] for name, values in run.kept.figures.items()}
    return {"from": places.get(run.kept.run_id, -1), "figures": figures}


def _metric_columns(runs: Sequence[RecordedRun]) -> list[dict[str, Any]]:
    """Return the figures of the metrics over all rows, those of the latest run first."""
    found = [{each.metric: each for each in run.metrics if not each.slice_column} for run in runs]
    names = dict.fromkeys(key for metrics in reversed(found) for key in metrics)
    return [_metric_column(key, [metrics.get(key) for metrics in found]) for key in names]


def _metric_column(key: str, found: Sequence[RecordedMetric | None]) -> dict[str, Any]:
    latest = next(metric for metric in reversed(found) if metric is not None)
    return {
        "key": key,
        "direction": latest.direction,
        "bounds": latest.bounds,
        **{figure: [_scaled(metric, figure) for metric in found] for figure in ("mean", "low", "high")},
        **{
            state: [None if metric is None else getattr(metric, state) for metric in found]
            for state in ("scored", "undefined", "failed")
        },
    }


def _scaled(metric: RecordedMetric | None, figure: str) -> int | None:
    value = None if metric is None else getattr(metric, figure)
    return None if value is None else round(value * SCALE)


def _slices(runs: Sequence[RecordedRun]) -> list[dict[str, Any]]:
    """Return the means of slices: of the latest runs, up to a number of values."""
    per_run = max((sum(1 for each in run.metrics if each.slice_column) for run in runs), default=0)
    if not per_run:
        return []
    shown = runs[-max(1, MOST_SLICE_VALUES // per_run) :]
    first = len(runs) - len(shown)
    columns: dict[tuple[str, str, str], list[RecordedMetric | None]] = {}
    latest = max((place for place, run in enumerate(shown) if run.status == keys.COMPLETED), default=0)
    for place, run in enumerate(shown):
        for metric in run.metrics:
            if metric.slice_column:
                at = (metric.slice_column, metric.slice, metric.metric)
                columns.setdefault(at, [None] * len(shown))[place] = metric
    return [
        {
            "column": column,
            "value": value,
            "metric": metric,
            "first": first,
            "mean": [_scaled(each, "mean") for each in found],
            "last": [_scaled(last, figure) for figure in ("mean", "low", "high")],
            "scored": 0 if last is None else last.scored,
        }
        for (column, value, metric), found in columns.items()
        for last in (found[latest],)
    ]


def _incident(incident: Incident, places: Mapping[str, int], times: Sequence[datetime]) -> dict[str, Any]:
    """Return an incident with the places of the runs that found it and found it over.

    If they are not among the runs, these are the latest that had started by then; -1 is before all of them.
    """

    def place(run_id: str, time: datetime) -> int:
        return places.get(run_id, bisect_right(times, time) - 1)

    return {
        "text": shorten(incident.sentence, _LONGEST_TEXT),
        "kind": incident.kind,
        "opened": place(incident.run_id, incident.opened),
        "closed": None if incident.closed is None else place(incident.closing_run_id, incident.closed),
        "times": incident.times,
    }
