"""Writes a comparison of two runs as one HTML page that works offline and holds no script.

No text of the data becomes markup: every one of them is escaped, and the page's own policy forbids every request and
every script.
"""

import base64
import hashlib
from importlib.resources import files
from pathlib import PurePath

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from metric_core.statistics.resampling import LEVEL
from tasks.comparison.run_comparison import RunComparison
from tasks.reports.comparison.comparison_rows import changed_rows
from tasks.reports.comparison.comparison_view import WIDTH, metric_views
from tasks.reports.comparison.comparison_words import (
    check_numbers,
    correction_sentences,
    folder_text,
    headline,
    level_sentence,
    row_sentences,
)
from tasks.reports.timestamps import format_timestamp
from tasks.runs.finished_run import FinishedRun

_STYLES = ("report.css", "comparison.css")


def comparison_page(comparison: RunComparison) -> str:
    """The page of a comparison.

    Args:
        comparison: of two runs, whose folders are still where they were.

    Raises:
        RunFolderError: a run folder that is no longer whole.
    """
    folder = files("tasks.reports") / "templates"
    style = "\n".join((folder / name).read_text(encoding="utf-8").strip() for name in _STYLES)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    environment = Environment(
        loader=PackageLoader("tasks.reports", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    rows, too_many = changed_rows(comparison)
    manifest = FinishedRun(comparison.b.folder).manifest
    spans = {entry["key"]: entry["bounds"][1] - entry["bounds"][0] for entry in manifest["metrics"] if entry["bounds"]}
    return environment.get_template("comparison.html.j2").render(
        comparison=comparison,
        names=[PurePath(side.folder).name for side in (comparison.a, comparison.b) if side],
        headline=headline(comparison.metrics),
        sentences=list(row_sentences(comparison)),
        corrections=list(correction_sentences(comparison)),
        metrics=metric_views(comparison.metrics, spans),
        rows=rows,
        too_many=too_many,
        level=LEVEL,
        width=WIDTH,
        check_numbers=check_numbers,
        level_sentence=level_sentence,
        folder_text=folder_text,
        moment_text=format_timestamp,
        policy=f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'",
        style=Markup(style),  # noqa: S704 packaged with the project
    )
