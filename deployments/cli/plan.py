"""`assay plan`: what a run would compute, find kept and ask, stage by stage, without asking anything."""

import json
import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.tree import Tree

from deployments.cli._support.console import print_table, stderr, stdout
from deployments.cli._support.options import Json, with_config

if TYPE_CHECKING:
    from flows.config.run_config import RunConfig
    from flows.dry_run.dry_run_result import DryRun, PendingContexts, StageDryRun
    from flows.execution.plan import Plan

Fetch = Annotated[
    bool,
    typer.Option(
        "--fetch", help="Ask the retriever for the contexts now, instead of planning with those it gave last."
    ),
]


@with_config
def plan(config: "RunConfig", fetch: Fetch = False, as_json: Json = False) -> None:
    """Show what a run would do, reuse and ask, without doing it."""
    os.environ.setdefault("PREFECT_LOGGING_LEVEL", "CRITICAL")
    from flows.dry_run.dry_run import make_dry_run  # noqa: PLC0415 keeps `assay --help` quick
    from flows.execution.plan import plan_run  # noqa: PLC0415

    made = plan_run(config)
    forecast = make_dry_run(config, made, fetch=fetch)
    if as_json:
        stdout.print_json(json.dumps(_content(made, forecast)))
        return
    for problem in forecast.problems:
        stderr.print(f"warning: {problem}", style="yellow", markup=False, soft_wrap=True)
    _show(made)
    if forecast.contexts is not None:
        stdout.print(_describe(forecast.contexts), soft_wrap=True, markup=False)
    if forecast.contexts is None or forecast.contexts.fetched is not None:
        _show_dry_run(forecast)


def _content(made: "Plan", forecast: "DryRun") -> dict[str, Any]:
    found = {stage.stage: _stage_content(stage) for stage in forecast.stages}
    return {
        "metrics": [request.key for request in made.requests],
        "stages": [
            {
                "stage": str(stage),
                "products": {str(product): list(made.users_of(product)) for product in made.products_of(stage)},
                **found.get(stage, {}),
            }
            for stage in made.stages
        ],
        "left_out": {metric: list(columns) for metric, columns in made.left_out.items()},
        "rows": forecast.rows,
        "bad_rows": forecast.bad_rows,
        "shards": forecast.shards,
        "judge": {**asdict(forecast.tally), "certainty": forecast.certainty},
        "problems": list(forecast.problems),
        "contexts": _contexts_content(forecast.contexts),
    }


def _contexts_content(contexts: "PendingContexts | None") -> dict[str, Any] | None:
    if contexts is None:
        return None
    fetched = None if contexts.fetched is None else contexts.fetched.isoformat()
    return {"index": contexts.index, "rows": contexts.rows, "fetched": fetched}


def _describe(contexts: "PendingContexts") -> str:
    fetched = f"the contexts of {contexts.rows} rows from {contexts.index}"
    if contexts.fetched is not None:
        return (
            f"The run fetches {fetched}. The numbers are for those that it gave on "
            f"{contexts.fetched:%Y-%m-%d at %H:%M} UTC; it may give others now."
        )
    return (
        f"Retrieval comes first: the run fetches {fetched}, and what it asks the judge depends on them. "
        "No contexts for these questions are kept; --fetch fetches them now."
    )


def _stage_content(stage: "StageDryRun") -> dict[str, Any]:
    tables = {"kept": stage.kept, "missing": stage.missing, "unknown": stage.unknown}
    return {"tables": tables, "judge": {**asdict(stage.tally), "certainty": stage.certainty} if stage.judged else None}


def _show(made: "Plan") -> None:
    from flows.execution.plan import LEVELS  # noqa: PLC0415 keeps `assay --help` quick

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


def _show_dry_run(forecast: "DryRun") -> None:
    table = Table(box=None, pad_edge=False, header_style="bold", title_justify="left")
    table.add_column("stage", no_wrap=True)
    for heading in ("kept", "questions", "stored", "to ask", "tokens in", "out"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for stage in forecast.stages:
        shards = f"{stage.kept} of {forecast.shards}" + ("?" if stage.unknown else "")
        certainty = str(stage.certainty) if stage.certainty != "exact" else ""
        table.add_row(str(stage.stage), shards, *(_counts(stage) if stage.judged else ("-",) * 5), certainty)
    rows = f"{forecast.rows:,} row{'s' * (forecast.rows != 1)}"
    shards = f"{forecast.shards:,} shard{'s' * (forecast.shards != 1)}"
    stdout.print(f"{rows} in {shards}; tables of shards, and questions for the judge:")
    print_table(stdout, table)
    if any(stage.unknown for stage in forecast.stages):
        stdout.print("?: only the run can tell, when what comes before is there")
    tally = forecast.tally
    how = {"exact": "", "estimated": "about ", "at least": "at least "}[forecast.certainty]
    stdout.print(
        f"The judge would be asked {how}{tally.asked} questions in {tally.requests} requests: about "
        f"{tally.prompt_tokens} tokens in, {tally.output_tokens} out",
        soft_wrap=True,
    )


def _counts(stage: "StageDryRun") -> tuple[str, ...]:
    tally = stage.tally
    counts = (tally.questions, tally.stored, tally.asked, tally.prompt_tokens, tally.output_tokens)
    return tuple(str(count) for count in counts)
