"""Write a run's report: one HTML file that a browser opens from anywhere, without a server and without a network.

What ran, the summary and the stages are HTML; the worst rows with all their evidence are JSON, which a script of the
page turns into elements. No text of the data becomes markup in either part, and the content security policy of the
page forbids every request and every other script.
"""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markupsafe import Markup

from metric_core.errors import ConfigError, RunFolderError
from metric_core.reasons import why_left_out
from metric_core.stages import Stage
from metric_core.statistics.summary import MetricSummary
from tasks.calibration.run_labels import Disagreement, read_contradicted
from tasks.documents.blocks import Block
from tasks.documents.html import to_html
from tasks.documents.run.score_table import MetricScale, read_cells, worst_rows_first
from tasks.documents.run.summary_rows import stage_table, verdict_line
from tasks.documents.run.summary_view import AXIS, DRAWING_HEIGHT, DRAWING_WIDTH, metric_view, worst_metrics
from tasks.documents.timestamps import format_timestamp
from tasks.findings.finding import RunRecords
from tasks.findings.parts import Templated
from tasks.findings.table import cautions_of, findings_of, lines_of
from tasks.record.run_record import RunRecord
from tasks.record.run_summary import RunSummary
from tasks.reports.page import open_templates, render_page, render_part
from tasks.reports.run.evidence_view import row_view
from tasks.reports.run.language_view import language_view
from tasks.reports.run.ranking_view import ranking_metrics
from tasks.reports.run.row_tables import RowTables, entity_match, read_row_tables
from tasks.runs.run_folder import REPORT, SCORES, SUMMARY, RunFolder
from tasks.runtime.atomic_files import write_output
from tasks.runtime.stored_data import shown_source

WORST_ROWS = 1000
"""Default number of rows to embed with their evidence."""

LARGEST_DATA = 16_000_000
"""Maximum size of the row data on a page, in bytes; the tables have all rows."""

BAD_ROWS_SHOWN = 200

PARTS = "parts"
"""Value of a row with what findings show when it is opened: titles, each with a list of items."""

_STYLES = ("report.css",)
_SCRIPTS = ("dom.js", "evidence.js", "table.js", "slices.js")
_UNSAFE_IN_SCRIPT = {ord(character): f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"}


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows on the page.

    Args:
        data: JSON of the rows, worst first.
        embedded: Number of these rows.
        too_large: Number of rows left out because the page would become too large.
        total: Number of rows of the run.
        disagreements: Kinds of disagreement that some of these rows have.
    """

    data: str
    embedded: int
    too_large: int
    total: int
    disagreements: tuple[Disagreement, ...] = ()


def write_report(folder: Path, worst_rows: int = WORST_ROWS, out: Path | None = None) -> Path:
    """Write the report of a run.

    Args:
        folder: Run folder with run.json, summary.json, scores.parquet and stages/.
        worst_rows: Number of rows to embed with their evidence, worst first; at least 0.
        out: File to write; default `report.html` in the run folder.

    Returns:
        The path of the report.

    Raises:
        RunFolderError: The folder does not hold a finished run of this format, or `out` cannot be written.
        ConfigError: `worst_rows` is negative.
    """
    if worst_rows < 0:
        raise ConfigError(f"the number of rows in the report must be at least 0, got {worst_rows}")
    record, summary = RunFolder(folder).read_finished_record(), RunFolder(folder).read_summary()
    summaries = _summaries(folder, record, summary)
    metric_scales = [MetricScale.of_metric(metric) for metric in record.metrics]
    cells = read_cells(folder / SCORES)
    run = RunRecords(record, summary, folder)
    means = {key: mean for each in findings_of(run) if each.means is not None for key, mean in each.means(run).items()}
    parts: dict[str, list[Markup]] = {}
    for each in findings_of(run):
        for key, part in ({} if each.of_metric is None else each.of_metric(run)).items():
            parts.setdefault(key, []).append(render_part(part, {}))
    metrics = [
        metric_view(metric, numbers, cells, parts.get(metric.key, ()), means.get(metric.key))
        for metric, numbers in zip(record.metrics, summaries, strict=True)
    ]
    order = worst_rows_first(cells, metric_scales)
    rows = _rows(run, metric_scales, order, worst_rows)
    page = _page(
        run,
        {
            "run": _run_view(run),
            "metrics": metrics,
            "worst": [metrics[i] for i in worst_metrics(metric_scales, summaries)],
            "rows": rows,
        },
    )
    report = folder / REPORT if out is None else out
    write_output(report, page, "the report")
    return report


def load_templates() -> None:
    """Load the templates of the report before it is written; those not yet compiled take a tenth of a second."""
    templates = open_templates()
    for name in ("report.html.j2", *templates.list_templates(filter_func=_is_part)):
        templates.get_template(name)


def _is_part(name: str) -> bool:
    """Return whether a file is the template of a part of a page: of the report, or in the room of a finding."""
    return name.endswith(".html.j2") and (name.startswith(("_", "page")) or "/" in name)


def script_json(value: Any) -> str:
    r"""Return JSON that is safe in a script element: nothing in it can end the element or start a comment.

    >>> script_json("</script>")
    '"\\u003c/script\\u003e"'
    """
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).translate(_UNSAFE_IN_SCRIPT)


def _summaries(folder: Path, record: RunRecord, summary: RunSummary) -> list[MetricSummary]:
    by_key = summary.by_metric
    missing = [metric.key for metric in record.metrics if metric.key not in by_key]
    if missing:
        raise RunFolderError(f"{folder / SUMMARY} lacks the metrics {', '.join(missing)}. Run the evaluation again.")
    return [by_key[metric.key] for metric in record.metrics]


def _rows(run: RunRecords, metric_scales: Sequence[MetricScale], order: Sequence[str], most: int) -> _Rows:
    """Return the rows for the page.

    Args:
        order: Ids of all rows of the run, worst first.
        most: Maximum number of rows to embed.
    """
    record, folder, chosen = run.record, run.folder, order[:most]
    match, rankings = entity_match(record.metrics), ranking_metrics(record.metrics)
    values = [each.rows(run, chosen) for each in findings_of(run) if each.rows is not None]
    contradicted = read_contradicted(folder)
    disagreements: set[Disagreement] = set()
    embedded: list[str] = []
    room = LARGEST_DATA
    for tables in read_row_tables(folder, chosen):
        disagreeing = _disagreements(tables, contradicted)
        found = [find(tables.sample) for find in values]
        more: dict[str, Any] = {"disagreements": disagreeing}
        for each in found:
            more |= each
        more[PARTS] = [part for each in found for part in each.get(PARTS, ())]
        data = script_json(row_view(tables, metric_scales, match, rankings) | more)
        size = len(data.encode(errors="replace"))
        if size <= room:
            embedded.append(data)
            room -= size
            disagreements.update(disagreeing)
    numbers = len(embedded), len(chosen) - len(embedded), len(order)
    return _Rows(f"[{','.join(embedded)}]", *numbers, tuple(who for who in Disagreement if who in disagreements))


def _disagreements(tables: RowTables, contradicted: Collection[str]) -> list[Disagreement]:
    """Return who disagrees on a row."""
    voted = (row["panel"] or () for stage in (Stage.VERDICTS, Stage.RATINGS) for row in tables.rows(stage))
    is_split = any(len({vote["label"] for vote in votes} - {None}) > 1 for votes in voted)
    is_contradicted = tables.sample["row_id"] in contradicted
    found = ((Disagreement.JUDGES, is_split), (Disagreement.JUDGE_AND_PEOPLE, is_contradicted))
    return [who for who, is_so in found if is_so]


def _run_view(run: RunRecords) -> dict[str, Any]:
    record = run.record
    names = ("run_id", "created", "seconds", "rows", "rows_read", "source", "embedder", "language", "versions")
    return {
        **{name: getattr(record, name) for name in (*names, "repetition", "bad_row_count")},
        "left_out": {metric: why_left_out(columns) for metric, columns in record.left_out.items()},
        "meaning": verdict_line(record),
        "languages": language_view(record),
        "title": Path(shown_source(record.source)).name or "an evaluation",
        "created_text": format_timestamp(record.created),
        "warnings": [*(f"too few scores: {failure}" for failure in record.failures), *record.warnings],
        "bad_rows": record.bad_rows[:BAD_ROWS_SHOWN],
        "notes": [*lines_of(run, "notes")],
        "reading": [*lines_of(run, "reading")],
        "stages": to_html([stage_table(record)], "Table of stages"),
        "tables": [stage for stage in Stage if stage in record.stages and stage is not Stage.AGGREGATION],
    }


def _page(run: RunRecords, content: Mapping[str, Any]) -> str:
    rows: _Rows = content["rows"]
    keys = script_json([metric["key"] for metric in content["metrics"]])
    data = Markup(f'{{"metrics":{keys},"rows":{rows.data}}}')  # noqa: S704 escaped by script_json
    drawing = {"width": DRAWING_WIDTH, "height": DRAWING_HEIGHT, "axis": AXIS}
    shared = {**content, "drawing": drawing}
    findings = [*findings_of(run)]
    parts: dict[str, list[Templated | Sequence[Block] | None]] = {
        "headers": [[*cautions_of(run)], *(each.header(run) for each in findings if each.header is not None)],
        "subheaders": [each.subheader(run) for each in findings if each.subheader is not None],
        "sections": [each.section(run) for each in findings if each.section is not None],
        "filters": [each.filter(run) for each in findings if each.filter is not None],
    }
    rendered = {place: [render_part(part, shared) for part in found] for place, found in parts.items()}
    return render_page("report.html.j2", {**shared, "data": data, **rendered}, _STYLES, _SCRIPTS)
