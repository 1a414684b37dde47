"""`assay metrics`: list the metrics, or describe one."""

import json
from math import isinf
from typing import Annotated

import typer

from deployments.cli._support.console import stdout
from deployments.cli._support.metric_guide import (
    allowed_values,
    default_request,
    describe_metric,
    judge_of,
    needed_columns,
    range_of,
    render_guide,
    render_overview,
)
from deployments.cli._support.options import Json
from deployments.cli._support.print_document import print_table
from deployments.cli._support.verb import VerbGroup
from metric_core.declarations.metric import Metric
from metric_core.metrics.guides import read_guide
from metric_core.metrics.registry import METRICS, parse_request
from metric_core.records import Direction
from tasks.documents.blocks import Table, make_table
from tasks.plugins.metric_lookup import find_metric, packaged_metrics

app = VerbGroup()


def _names(incomplete: str) -> list[str]:
    return [name for name in METRICS if name.startswith(incomplete)]


@app.command()
def metrics(
    name: Annotated[
        str | None,
        typer.Argument(
            help="Metric to describe; a custom metric as module:attribute.",
            show_default=False,
            autocompletion=_names,
        ),
    ] = None,
    as_json: Json = False,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the page of the metric, or the list, in Markdown.")
    ] = False,
) -> None:
    """List the metrics, or describe one."""
    if markdown:
        typer.echo(render_guide(_find(name)) if name else render_overview(METRICS.values()), nl=False)
        return
    chosen = [_find(name)] if name else [*METRICS.values(), *packaged_metrics()]
    if as_json:
        stdout.print_json(json.dumps([_entry(metric) for metric in chosen]))
    elif name:
        _show(chosen[0])
    else:
        print_table(stdout, _table(chosen))
        stdout.print(
            "`assay metrics NAME` shows the formula, the parameters, an example, and when a score is undefined.",
            style="dim",
            soft_wrap=False,
        )


def _find(name: str) -> Metric:
    """Return the metric of a name, or of a key, as tables print it: `key_point_recall(strict=false)`."""
    return parse_request(name, find_metric).metric if "(" in name else find_metric(name)


def _entry(metric: Metric) -> dict[str, object]:
    request = default_request(metric)
    bounds = request.bounds
    return {
        "name": metric.name,
        "origin": metric.origin or "rag-assay",
        "aliases": list(metric.aliases),
        "summary": metric.summary,
        "source": metric.source,
        "columns": list(needed_columns(request)),
        "products": [str(product) for product in request.products],
        "direction": str(metric.direction),
        "bounds": [None if isinf(bound) else bound for bound in bounds] if bounds else None,
        "parameters": {
            key: {"default": p.default, "allowed": allowed_values(p), "summary": p.summary}
            for key, p in metric.parameters.items()
        },
        "undefined": dict(metric.undefined),
        "language_model": request.needs_language_model,
        "formula": None if metric.origin else read_guide(metric.name).formula,
        "in_default_suite": metric.in_default_suite,
    }


def _table(chosen: list[Metric]) -> Table:
    rows = [
        (
            metric.name,
            {Direction.HIGHER: "higher", Direction.LOWER: "lower", Direction.NEITHER: "-"}[metric.direction],
            range_of(metric),
            judge_of(metric),
            ", ".join(needed_columns(default_request(metric))) or "any",
            metric.summary,
        )
        for metric in chosen
    ]
    headings = ("metric", "better", "range", "judge", "columns", "what it measures")
    return make_table(headings, rows, (), ("judge", "columns"))


def _show(metric: Metric) -> None:
    stdout.print(metric.name, style="bold")
    for section in describe_metric(metric):
        if section.title:
            stdout.print(section.title, style="bold")
        for line in section.lines:
            mark = "  " if section.verbatim else "  - " if section.title else ""
            stdout.print(mark + line.replace("\n", "\n    "))
        _, *rows = section.rows or ((),)
        for heading, *cells in rows:
            text = cells[0] if len(cells) == 1 else f"{cells[2]} ({cells[0]}; default: {cells[1]})"
            stdout.print(f"  {heading}: {text}")
