"""Write a run's report: one HTML file that a browser opens from anywhere, without a server and without a network.

What ran, the summary and the stages are HTML. The worst rows are JSON, and all their evidence is in blocks of deflated
JSON; a script of the page turns both into elements. No text of the data becomes markup, and the content security policy
of the page forbids every request and every other script.
"""

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
from tasks.documents.run.score_table import MetricScale, ScoreSurvey, iterate_cells, survey_cells
from tasks.documents.run.summary_rows import stage_table, verdict_line
from tasks.documents.run.summary_view import (
    AXIS,
    DRAWING_HEIGHT,
    DRAWING_WIDTH,
    metric_view,
    value_range,
    worst_metrics,
)
from tasks.documents.timestamps import format_timestamp
from tasks.findings.finding import RunRecords
from tasks.findings.parts import Templated
from tasks.findings.table import cautions_of, findings_of, lines_of
from tasks.record.run_record import RunRecord
from tasks.record.run_summary import RunSummary
from tasks.reports.page import open_templates, render_page, render_part, script_json
from tasks.reports.run.evidence_view import row_view
from tasks.reports.run.language_view import language_view
from tasks.reports.run.ranking_view import ranking_metrics
from tasks.reports.run.row_blocks import PARTS, RowBlocks
from tasks.reports.run.row_tables import RowTables, entity_match, read_row_tables
from tasks.runs.run_folder import REPORT, SCORES, SUMMARY, RunFolder
from tasks.runtime.atomic_files import write_output
from tasks.runtime.stored_data import shown_source

MOST_ROWS = 1000
"""Greatest number of rows of a run whose page has all of them by default."""

WORST_ROWS = 200
"""Default number of rows on the page of a larger run: as many as are read."""

LARGEST_DATA = 16_000_000
"""Maximum size of the row data on a page, in bytes; the tables have all rows."""

BAD_ROWS_SHOWN = 200

_STYLES = ("report.css",)
_SCRIPTS = ("dom.js", "evidence.js", "table.js", "slices.js")


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows on the page.

    Args:
        packed: The rows, worst first.
        total: Number of rows of the run.
        disagreements: Kinds of disagreement that some of the worst rows have.
    """

    packed: RowBlocks
    total: int
    disagreements: tuple[Disagreement, ...] = ()

    @property
    def embedded(self) -> int:
        """Number of rows on the page."""
        return len(self.packed.rows)

    @property
    def too_large(self) -> int:
        """Number of rows left out because the page would become too large."""
        return self.packed.left_out


def write_report(folder: Path, worst_rows: int | None = None, out: Path | None = None) -> Path:
    """Write the report of a run.

    Args:
        folder: Run folder with run.json, summary.json, scores.parquet and stages/.
        worst_rows: Number of rows to embed with their evidence, worst first; at least 0. Default: all of a run of at
            most `MOST_ROWS`, else `WORST_ROWS`.
        out: File to write; default `report.html` in the run folder.

    Returns:
        The path of the report.

    Raises:
        RunFolderError: The folder does not hold a finished run of this format, or `out` cannot be written.
        ConfigError: `worst_rows` is negative.
    """
    if worst_rows is not None and worst_rows < 0:
        raise ConfigError(f"the number of rows in the report must be at least 0, got {worst_rows}")
    record, summary = RunFolder(folder).read_finished_record(), RunFolder(folder).read_summary()
    summaries = _summaries(folder, record, summary)
    metric_scales = [MetricScale.of_metric(metric) for metric in record.metrics]
    ranges = {
        each.metric: value_range(each.distribution, metric_scale)
        for each, metric_scale in zip(summaries, metric_scales, strict=True)
        if each.distribution is not None
    }
    survey = survey_cells(iterate_cells(folder / SCORES), metric_scales, ranges, max(MOST_ROWS, worst_rows or 0))
    run = RunRecords(record, summary, folder)
    means = {key: mean for each in findings_of(run) if each.means is not None for key, mean in each.means(run).items()}
    parts: dict[str, list[Markup]] = {}
    for each in findings_of(run):
        for key, part in ({} if each.of_metric is None else each.of_metric(run)).items():
            parts.setdefault(key, []).append(render_part(part, {}))
    metrics = [
        metric_view(
            metric, numbers, survey.histograms.get(metric.key, ()), parts.get(metric.key, ()), means.get(metric.key)
        )
        for metric, numbers in zip(record.metrics, summaries, strict=True)
    ]
    by_default = survey.rows if survey.rows <= MOST_ROWS else WORST_ROWS
    rows = _rows(run, metric_scales, survey, by_default if worst_rows is None else worst_rows)
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


def _summaries(folder: Path, record: RunRecord, summary: RunSummary) -> list[MetricSummary]:
    by_key = summary.by_metric
    missing = [metric.key for metric in record.metrics if metric.key not in by_key]
    if missing:
        raise RunFolderError(f"{folder / SUMMARY} lacks the metrics {', '.join(missing)}. Run the evaluation again.")
    return [by_key[metric.key] for metric in record.metrics]


def _rows(run: RunRecords, metric_scales: Sequence[MetricScale], survey: ScoreSurvey, most: int) -> _Rows:
    """Return the rows for the page.

    Args:
        most: Maximum number of rows to embed.
    """
    record, folder, chosen = run.record, run.folder, survey.worst[:most]
    match, rankings = entity_match(record.metrics), ranking_metrics(record.metrics)
    values = [each.rows(run, chosen) for each in findings_of(run) if each.rows is not None]
    contradicted = read_contradicted(folder)
    disagreements: set[Disagreement] = set()
    packed = RowBlocks(LARGEST_DATA)
    for tables in read_row_tables(folder, chosen):
        disagreeing = _disagreements(tables, contradicted)
        disagreements.update(disagreeing)
        found = [find(tables.sample) for find in values]
        more: dict[str, Any] = {"disagreements": disagreeing}
        for each in found:
            more |= each
        more[PARTS] = [part for each in found for part in each.get(PARTS, ())]
        packed.add(row_view(tables, metric_scales, match, rankings), more)
    packed.close_block()
    return _Rows(packed, survey.rows, tuple(who for who in Disagreement if who in disagreements))


def _disagreements(tables: RowTables, contradicted: Collection[str]) -> list[Disagreement]:
    """Return who disagrees on a row."""
    voted = (row["panel"] for stage in (Stage.VERDICTS, Stage.RATINGS) for row in tables.rows(stage) if row["panel"])
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
    blocks, lines = script_json(rows.packed.blocks), ",".join(rows.packed.rows)
    data = Markup(f'{{"metrics":{keys},"blocks":{blocks},"rows":[{lines}]}}')  # noqa: S704 escaped by script_json
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
