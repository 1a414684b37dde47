"""Read the rows that changed most and their evidence in both runs, for the page of a comparison."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from metric_core.records import Direction
from tasks.comparison.run_comparison import RunComparison
from tasks.comparison.run_pair import Matching, RunRows
from tasks.documents.comparison.comparison_words import format_signed
from tasks.documents.figures import format_fixed
from tasks.documents.run.score_table import MetricScale
from tasks.findings.table import compared_findings
from tasks.reports.comparison.comparison_evidence import evidence_groups
from tasks.reports.comparison.comparison_passages import passages_side_by_side
from tasks.reports.comparison.word_diff import diff_words
from tasks.reports.run.evidence_view import row_view
from tasks.reports.run.row_tables import entity_match, read_row_tables
from tasks.reports.truncation import LONGEST_TEXT
from tasks.runs.finished_run import FinishedRun

MOST_ROWS = 100
"""Maximum number of rows on a page."""

_MOST_BY_FINDINGS = 40
"""Maximum number of rows on the page because of findings alone."""


@dataclass(frozen=True, slots=True)
class _Side:
    """The chosen rows of one run.

    Args:
        metric_scales: Metrics of the run, by key.
        samples: Mapping from row name to row of the samples table.
        views: Mapping from row name to the evidence of the row.
    """

    metric_scales: Mapping[str, MetricScale]
    samples: Mapping[str, Mapping[str, Any]]
    views: Mapping[str, Mapping[str, Any]]


def changed_rows(comparison: RunComparison) -> tuple[list[dict[str, Any]], int]:
    """Return the rows that changed most, the largest losses first.

    Args:
        comparison: Comparison of two runs whose folders have not moved.

    Returns:
        The rows for the page, and the number of rows left out.
    """
    names = _select_rows(comparison)
    if comparison.a is None or not names:
        return [], 0
    shown = names[:MOST_ROWS]
    sides = [_read(folder, comparison.match, shown) for folder in (comparison.a.folder, comparison.b.folder)]
    findings = compared_findings(comparison)
    values = [each.row_values(comparison) for each in findings if each.row_values is not None]
    rows = [_row(name, *sides) | {key: found for of in values for key, found in of(name).items()} for name in shown]
    return sorted(rows, key=lambda row: (row["net"], row["name"])), len(names) - len(shown)


def _select_rows(comparison: RunComparison) -> list[str]:
    """Return the names of the rows: answers lost or regained, then the most changed of every metric, and so on."""
    lists = [metric.difference.most_changed for metric in comparison.metrics if metric.difference]
    longest = max(map(len, lists), default=0)
    by_score = [rows[i].row for i in range(longest) for rows in lists if i < len(rows)]
    by_findings = [name for finding in compared_findings(comparison) for name in finding.rows(comparison)]
    return list(dict.fromkeys([*by_findings[:_MOST_BY_FINDINGS], *by_score]))


def _read(folder: str, match: str | None, names: Sequence[str]) -> _Side:
    run = FinishedRun(folder)
    row_ids = {name: name for name in names} if match is None else RunRows.from_run(run, Matching(match)).row_ids
    ids = [row_ids[name] for name in names]
    metric_scales = {metric.key: MetricScale.of_metric(metric) for metric in run.record.metrics}
    match_entities = entity_match(run.record.metrics)
    samples, views = {}, {}
    for name, tables in zip(names, read_row_tables(Path(folder), ids), strict=True):
        samples[name] = tables.sample
        views[name] = row_view(tables, tuple(metric_scales.values()), match_entities)
    return _Side(metric_scales, samples, views)


def _row(name: str, a: _Side, b: _Side) -> dict[str, Any]:
    before, after = a.samples[name], b.samples[name]
    scores = list(_scores(name, a, b))
    moves = [score["move"] for score in scores if score["move"]]
    return {
        "name": name,
        "net": sum(moves) / len(scores) if scores else 0.0,
        "question": _sides(before["user_input"], after["user_input"]),
        "reference": _sides(before["reference"], after["reference"]),
        "answer": _sides(before["response"], after["response"]),
        "scores": [score for score in scores if score["kind"] != "same"],
        "same_scores": [score["metric"] for score in scores if score["kind"] == "same"],
        "groups": evidence_groups(a.views[name], b.views[name]),
        "passages": passages_side_by_side(before["retrieved_contexts"] or (), after["retrieved_contexts"] or ()),
    }


def _sides(a: str | None, b: str | None) -> dict[str, Any]:
    """Return a text of both runs with the differing words marked."""
    clipped_a, clipped_b = (a or "")[:LONGEST_TEXT], (b or "")[:LONGEST_TEXT]
    pieces_a, pieces_b = diff_words(clipped_a, clipped_b)
    is_cut = max(len(a or ""), len(b or "")) > LONGEST_TEXT
    return {"a": pieces_a, "b": pieces_b, "is_same": a == b, "is_cut": is_cut, "plain": clipped_b}


def _scores(name: str, a: _Side, b: _Side) -> Iterator[dict[str, Any]]:
    cells_b = dict(zip(b.metric_scales, b.views[name]["cells"], strict=True))
    for key, cell_a in zip(a.metric_scales, a.views[name]["cells"], strict=True):
        cell_b = cells_b.get(key)
        if cell_a is not None and cell_b is not None:
            yield {
                "metric": key,
                "a": _format_value(cell_a),
                "b": _format_value(cell_b),
                **_change(cell_a, cell_b, a.metric_scales[key]),
            }


def _change(a: Mapping[str, Any], b: Mapping[str, Any], metric_scale: MetricScale) -> dict[str, Any]:
    """Return the change of a score and its kind; `move` is the share of the metric's range, positive if better."""
    if a["status"] != b["status"] or "value" not in a or "value" not in b:
        kind = "same" if _format_value(a) == _format_value(b) else "other"
        return {"change": "", "kind": kind, "move": 0.0}
    change = round(b["value"] - a["value"], 12)
    if not change:
        return {"change": "", "kind": "same", "move": 0.0}
    if metric_scale.direction is Direction.NEITHER:
        return {"change": format_signed(change), "kind": "other", "move": 0.0}
    width = metric_scale.bounds[1] - metric_scale.bounds[0] if metric_scale.bounds and metric_scale.span else 0
    gain = change if metric_scale.direction is Direction.HIGHER else -change
    return {
        "change": format_signed(change),
        "kind": "better" if gain > 0 else "worse",
        "move": gain / (width or abs(gain)),
    }


def _format_value(cell: Mapping[str, Any]) -> str:
    if "value" in cell:
        return format_fixed(cell["value"])
    if "label" in cell:
        return str(cell["label"])
    return f"{cell['status']}: {cell.get('reason', '')}"
