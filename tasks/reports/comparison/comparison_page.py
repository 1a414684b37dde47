"""Render a comparison of two runs as one HTML page that works offline and contains no script."""

from pathlib import PurePath

from metric_core.statistics.resampling import LEVEL
from tasks.comparison.run_comparison import RunComparison
from tasks.reports.comparison.comparison_diagnosis import diagnosis_changes_view
from tasks.reports.comparison.comparison_rows import changed_rows
from tasks.reports.comparison.comparison_view import WIDTH, metric_views
from tasks.reports.comparison.comparison_words import (
    cause_sentences,
    check_numbers,
    correction_sentences,
    headline,
    level_sentence,
    row_sentences,
)
from tasks.reports.comparison.slices_words import headline_of_slices, slice_views
from tasks.reports.page import render_page
from tasks.reports.timestamps import format_timestamp
from tasks.runs.finished_run import FinishedRun
from tasks.runtime.wording import shorten_path

_STYLES = ("report.css", "comparison.css")


def comparison_page(comparison: RunComparison) -> str:
    """Render the page of a comparison.

    Args:
        comparison: Comparison of two runs whose folders have not moved.

    Raises:
        RunFolderError: A run folder is incomplete.
    """
    rows, too_many = changed_rows(comparison)
    manifest = FinishedRun(comparison.b.folder).manifest
    spans = {entry["key"]: entry["bounds"][1] - entry["bounds"][0] for entry in manifest["metrics"] if entry["bounds"]}
    content = {
        "comparison": comparison,
        "names": [PurePath(side.folder).name for side in (comparison.a, comparison.b) if side],
        "headline": headline(comparison.metrics),
        "sentences": list(row_sentences(comparison)),
        "corrections": [*cause_sentences(comparison), *correction_sentences(comparison)],
        "diagnosis": diagnosis_changes_view(comparison, [row["name"] for row in rows]),
        "metrics": metric_views(comparison.metrics, spans),
        "slices": slice_views(comparison.slices, spans),
        "slices_headline": headline_of_slices(comparison.slices),
        "rows": rows,
        "too_many": too_many,
        "level": LEVEL,
        "width": WIDTH,
        "check_numbers": check_numbers,
        "level_sentence": level_sentence,
        "shorten_path": shorten_path,
        "moment_text": format_timestamp,
    }
    return render_page("comparison.html.j2", content, _STYLES)
