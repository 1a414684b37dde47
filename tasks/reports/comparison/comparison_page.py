"""Render a comparison of two runs as one HTML page that works offline and contains no script."""

from math import isfinite
from pathlib import PurePath

from metric_core.statistics.resampling import LEVEL
from tasks.comparison.run_comparison import RunComparison
from tasks.documents.blocks import Items
from tasks.documents.comparison.comparison_words import (
    changed_sentences,
    format_p,
    headline,
    question_sentence,
    row_sentences,
)
from tasks.documents.html import to_html
from tasks.documents.timestamps import format_timestamp
from tasks.findings.table import compared_findings
from tasks.reports.comparison.comparison_document import (
    caution,
    gate_blocks,
    settings,
)
from tasks.reports.comparison.comparison_rows import changed_rows
from tasks.reports.comparison.comparison_view import WIDTH, metric_views
from tasks.reports.page import render_page, render_part
from tasks.runs.finished_run import FinishedRun
from tasks.runtime.wording import format_percent, shorten_path

_STYLES = ("report.css", "comparison.css")


def comparison_page(comparison: RunComparison) -> str:
    """Render the page of a comparison.

    Args:
        comparison: Comparison of two runs whose folders have not moved.

    Raises:
        RunFolderError: A run folder is incomplete.
    """
    rows, too_many = changed_rows(comparison)
    findings, names = [*compared_findings(comparison)], [row["name"] for row in rows]
    said = (sentence for each in findings for sentence in each.sentences(comparison))
    sentences = (*changed_sentences(comparison), *said)
    parts = (each.section(comparison, names) for each in findings if each.section is not None)
    metrics = FinishedRun(comparison.b.folder).record.metrics
    widths = {metric.key: metric.bounds[1] - metric.bounds[0] for metric in metrics if metric.bounds is not None}
    spans = {key: width for key, width in widths.items() if isfinite(width)}
    content = {
        "comparison": comparison,
        "names": _names(comparison),
        "headline": headline(comparison.metrics),
        "questions": question_sentence(comparison),
        "caution": to_html(caution(comparison)),
        "gate": to_html(gate_blocks(comparison)),
        "headlines": [sentence for each in findings for sentence in each.headline(comparison)],
        "sentences": to_html([Items(sentences)] if sentences else ()),
        "sections": [render_part(part, {}) for part in parts],
        "differences": to_html([Items(tuple(row_sentences(comparison))), *settings(comparison)]),
        "metrics": metric_views(comparison.metrics, spans),
        "rows": rows,
        "too_many": too_many,
        "level": format_percent(LEVEL),
        "width": WIDTH,
        "format_p": format_p,
        "shorten_path": shorten_path,
        "moment_text": format_timestamp,
    }
    return render_page("comparison.html.j2", content, _STYLES)


def _names(comparison: RunComparison) -> list[str]:
    """Return the names of the runs: of the versions of an index if they are about two, else of their folders."""
    sides = [side for side in (comparison.a, comparison.b) if side]
    versions = list(dict.fromkeys(side.index for side in sides if side.index))
    return versions if len(versions) > 1 else [PurePath(side.folder).name for side in sides]
