"""`assay metrics`: list the metrics, or describe one."""

import json
from typing import Annotated

import typer
from rich.table import Table

from deployments.cli._support.console import print_table, stdout
from deployments.cli._support.options import Json
from metric_core.metric import Metric
from metric_core.records import Direction

ROOMY = 110
"""Minimum width of a terminal, in columns, for the full table."""


def _names(incomplete: str) -> list[str]:
    from metric_core.registry import METRICS  # noqa: PLC0415 keeps `assay --help` quick

    return [name for name in METRICS if name.startswith(incomplete)]


def metrics(
    name: Annotated[
        str | None,
        typer.Argument(
            help="Metric to describe; a custom metric as module:attribute.", show_default=False, autocompletion=_names
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the metrics, or describe one."""
    from metric_core.registry import METRICS  # noqa: PLC0415 keeps `assay --help` quick
    from tasks.plugins.metric_lookup import find_metric, packaged_metrics  # noqa: PLC0415

    chosen = [find_metric(name)] if name else [*METRICS.values(), *packaged_metrics()]
    if as_json:
        stdout.print_json(json.dumps([_entry(metric) for metric in chosen]))
    elif name:
        _show(chosen[0])
    else:
        print_table(stdout, _table(chosen))
        stdout.print(
            "`assay metrics NAME` shows the parameters, the aliases, and when a score is undefined.", style="dim"
        )


def _entry(metric: Metric) -> dict[str, object]:
    parameters = {name: parameter.default for name, parameter in metric.parameters.items()}
    bounds = metric.bounds(parameters)
    return {
        "name": metric.name,
        "origin": metric.origin or "rag-assay",
        "aliases": list(metric.aliases),
        "summary": metric.summary,
        "source": metric.source,
        "columns": list(metric.columns(parameters)),
        "products": [str(product) for product in metric.products(parameters)],
        "direction": str(metric.direction),
        "bounds": list(bounds) if bounds else None,
        "parameters": {key: {"default": p.default, "summary": p.summary} for key, p in metric.parameters.items()},
        "undefined": dict(metric.undefined),
        "language_model": metric.language_model,
        "in_default_suite": metric.in_default_suite,
    }


def _table(chosen: list[Metric]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    headings = ("metric", "better", "range", "judge", "columns", "what it measures")
    shown = [name for name in headings if stdout.width >= ROOMY or name not in ("judge", "columns")]
    for heading in shown:
        table.add_column(heading, overflow="fold", no_wrap=heading in ("metric", "better", "range"))
    for metric in chosen:
        entry = _entry(metric)
        bounds = entry["bounds"]
        cells = (
            metric.name,
            {Direction.HIGHER: "higher", Direction.LOWER: "lower", Direction.NEITHER: "-"}[metric.direction],
            f"{bounds[0]:g} to {bounds[1]:g}" if isinstance(bounds, list) else "varies",
            "language model" if metric.language_model else "any" if _asks_judge(metric) else "none",
            ", ".join(str(column) for column in entry["columns"] or ()) or "any",  # type: ignore[attr-defined]
            metric.summary,
        )
        table.add_row(*(cell for heading, cell in zip(headings, cells, strict=True) if heading in shown))
    return table


def _asks_judge(metric: Metric) -> bool:
    from metric_core.stages import any_judged  # noqa: PLC0415 keeps `assay --help` quick

    return any_judged(metric.products({name: parameter.default for name, parameter in metric.parameters.items()}))


def _show(metric: Metric) -> None:
    stdout.print(metric.name, style="bold")
    stdout.print(metric.summary)
    for label, text in (
        ("source", metric.source),
        ("other names", ", ".join(metric.aliases) or "none"),
        ("better", str(metric.direction)),
    ):
        stdout.print(f"  {label}: {text}", soft_wrap=True)
    for title, entries in (
        ("parameters", {key: f"{p.summary} (default {p.default!r})" for key, p in metric.parameters.items()}),
        ("undefined when", dict(metric.undefined)),
    ):
        if entries:
            stdout.print(title, style="bold")
            for key, text in entries.items():
                stdout.print(f"  {key}: {text}", soft_wrap=True, markup=False)
