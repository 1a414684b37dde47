"""`assay plan`: what a run would compute, stage by stage, without computing it."""

import json
from typing import TYPE_CHECKING, Any

from rich.tree import Tree

from deployments.cli.console import stdout
from deployments.cli.options import (
    ColumnMap,
    ConfigFile,
    EmptyText,
    IdColumn,
    Json,
    JudgeBackend,
    Limit,
    Metrics,
    Model,
    OnBadRow,
    Source,
    judge_table,
    overrides,
)

if TYPE_CHECKING:
    from flows.plan import Plan


def plan(
    source: Source = None,
    config: ConfigFile = None,
    metrics: Metrics = None,
    judge: JudgeBackend = None,
    model: Model = None,
    limit: Limit = None,
    on_bad_row: OnBadRow = None,
    empty_text: EmptyText = None,
    column_map: ColumnMap = None,
    id_column: IdColumn = None,
    as_json: Json = False,
) -> None:
    """Show the stages of a run, what each computes, and which metrics use it."""
    from flows.config import load_config  # noqa: PLC0415 keeps `assay --help` quick
    from flows.plan import plan_of  # noqa: PLC0415

    file, said = overrides(
        source,
        config,
        metrics=metrics,
        judge=judge_table(judge, model),
        limit=limit,
        on_bad_row=on_bad_row,
        empty_text=empty_text,
        column_map=column_map,
        id_column=id_column,
    )
    made = plan_of(load_config(file, said))
    if as_json:
        stdout.print_json(json.dumps(_content(made)))
    else:
        _show(made)


def _content(made: "Plan") -> dict[str, Any]:
    return {
        "metrics": [request.key for request in made.requests],
        "stages": [
            {
                "stage": str(stage),
                "products": {str(product): list(made.users_of(product)) for product in made.products_of(stage)},
            }
            for stage in made.stages
        ],
        "left_out": {metric: list(columns) for metric, columns in made.left_out.items()},
    }


def _show(made: "Plan") -> None:
    from flows.plan import LEVELS  # noqa: PLC0415 keeps `assay --help` quick

    tree = Tree(f"[bold]{len(made.requests)} metrics[/]: " + ", ".join(request.key for request in made.requests))
    for number, level in enumerate(LEVELS, start=1):
        busy = [stage for stage in level if stage in made.stages]
        if not busy:
            continue
        branch = tree.add(f"level {number}")
        for stage in busy:
            leaf = branch.add(f"[bold]{stage}[/]")
            for product in made.products_of(stage):
                users = made.users_of(product)
                leaf.add(f"{product}, once for {', '.join(users)}")
    stdout.print(tree)
    for metric, columns in made.left_out.items():
        stdout.print(f"left out: {metric} (no {', '.join(columns)})", style="dim")
