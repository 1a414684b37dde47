"""`assay plan`: show what a run would compute, reuse and ask per stage, without asking a judge."""

import json
import math
import os
from collections.abc import Iterator
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.text import Text
from rich.tree import Tree

from deployments.cli._support.console import stderr, stdout
from deployments.cli._support.dry_run_table import print_dry_run, stage_content
from deployments.cli._support.options import Json, with_config
from deployments.cli._support.print_document import print_table
from deployments.cli._support.run_lines import left_out_lines
from deployments.cli._support.verb import VerbGroup
from flows.config.run_config import RunConfig
from flows.dry_run.dry_run_result import DryRun, PendingContexts
from flows.dry_run.forecast import Forecast, Rates, make_forecast
from flows.planning.metric_plan import MetricPlan
from flows.planning.planner import draft_plan
from flows.planning.run_plan import RunPlan
from metric_core.errors import ConfigError
from metric_core.stages import Stage
from tasks.comparison.rows_needed import LEAST_OBSERVED, find_rows_needed
from tasks.documents.blocks import make_table
from tasks.documents.run.summary_rows import PROBABILITIES
from tasks.engine.registry import LEVELS
from tasks.metering.money import money_text, total_cost
from tasks.options.cost_options import CostOptions
from tasks.runs.finished_run import FinishedRun
from tasks.runtime.wording import describe_seconds, format_percent

app = VerbGroup()

Fetch = Annotated[
    bool,
    typer.Option("--fetch", help="Fetch contexts from the retriever now, instead of using those of the last fetch."),
]
Detect = Annotated[
    float | None,
    typer.Option(
        "--detect",
        metavar="DIFFERENCE",
        min=0.0,
        help="Show how many rows it takes to see this difference of a mean, and to pass a gate with it as margin.",
    ),
]
From = Annotated[
    list[str] | None,
    typer.Option(
        "--from",
        metavar="RUN",
        help="Run folder whose scores show how much rows vary, for --detect; twice for two runs of the same rows.",
    ),
]

RatesOption = Annotated[
    str | None,
    typer.Option(
        "--rates",
        metavar="P,D",
        help="Prompt and output tokens per second of the judge server. Default: measured ones.",
    ),
]


@app.command()
@with_config
def plan(
    config: RunConfig,
    fetch: Fetch = False,
    rates: RatesOption = None,
    detect: Detect = None,
    runs: From = None,
    as_json: Json = False,
) -> None:
    """Show what a run would ask, or how many rows it needs."""
    if detect is not None or runs:
        _show_rows_needed(detect, runs or [], config.by, as_json)
        return
    os.environ.setdefault("PREFECT_LOGGING_LEVEL", "CRITICAL")
    from flows.findings.preview import preview_run

    given = None if rates is None else _parse_rates(rates)
    planned = draft_plan(config)
    metrics, dry_run = planned.metrics, preview_run(planned, fetch=fetch)
    forecast = make_forecast(planned, dry_run, given)
    if as_json:
        content = _content(metrics, dry_run) | {"forecast": _forecast_content(forecast)}
        stdout.print_json(json.dumps(content))
        return
    of_findings = [problem for each in dry_run.of_findings.values() if each is not None for problem in each.problems]
    for problem in dict.fromkeys((*dry_run.problems, *of_findings)):
        stderr.print(f"warning: {problem}", style="yellow")
    _show(metrics)
    if Stage.VERDICTS in metrics.stages and metrics.verdict == "probability":
        stdout.print(PROBABILITIES)
    if dry_run.contexts is not None:
        stdout.print(_describe(dry_run.contexts))
    if dry_run.contexts is None or dry_run.contexts.fetched is not None:
        print_dry_run(dry_run)
        for line in _share_lines(planned):
            stdout.print(line)
        for line in _forecast_lines(config, dry_run, forecast):
            stdout.print(line)


def _parse_rates(text: str) -> Rates:
    """Return the rates in the form "55000,6000".

    Raises:
        ConfigError: The text is not two numbers above 0.
    """
    try:
        prompt, output = (float(part.replace("_", "")) for part in text.split(","))
    except ValueError:
        prompt = output = math.nan
    if not (0 < prompt < math.inf and 0 < output < math.inf):
        raise ConfigError(f"--rates takes prompt and output tokens per second, such as 55000,6000; got {text!r}")
    return Rates.from_speeds(prompt, output)


def _forecast_content(forecast: Forecast) -> dict[str, Any]:
    rates = forecast.rates
    measured = None if rates is None or rates.measured is None else rates.measured.isoformat()
    return {
        "seconds": forecast.seconds,
        "rates": None if rates is None else asdict(rates) | {"measured": measured},
        "cost": total_cost(forecast.by_judge),
        "covered_by_budget": forecast.covered,
    }


def _share_lines(plan: RunPlan) -> Iterator[str]:
    """Yield how many requests each worker process of a cluster has in flight."""
    workers = plan.storage.stages_at_once
    servers = [judge.server for judge in plan.models.judges] if plan.storage.runner.engine != "threads" else []
    for server in filter(None, servers):
        most = f"{server.share(workers):,} of the {server.concurrency:,} requests in flight per replica"
        yield f"Each of {workers} worker processes has at most {most} of {' and '.join(server.urls)}."


def _forecast_lines(costs: CostOptions, dry_run: DryRun, forecast: Forecast) -> Iterator[str]:
    """Yield what the questions to a judge server are expected to take and to cost."""
    tally, rates = dry_run.tally, forecast.rates
    if not tally.requests:
        return
    share = format_percent(tally.cached_tokens / (tally.prompt_tokens or 1))
    yield f"About {tally.cached_tokens:,} of the tokens in ({share}) will be in the server's prefix cache."
    yield 'If the server computes or bills these in full, prompts of language "en-short" cost less (`assay docs cost`).'
    if rates is None or forecast.seconds is None:
        why = forecast.unknown_runs or "no recorded run has asked this judge"
        yield f"The time is not known: {why.removesuffix('.')}; --rates gives its tokens per second."
    else:
        yield f"The judge needs about {describe_seconds(forecast.seconds)} for that, at {rates.words}."
    if forecast.money is not None:
        yield f"Cost of the judge: about {money_text(total_cost(forecast.by_judge))}."
    elif costs.has_prices:
        yield "The cost of the judge is not known: GPUs cost by the hour."
    if forecast.covered is not None:
        yield "The budget is enough for that." if forecast.covered else "The budget is not enough: the run would stop."


def _show_rows_needed(detect: float | None, runs: list[str], by: str | None, as_json: bool) -> None:
    if not detect or not runs:
        raise ConfigError(
            "numbers of rows need a difference above 0 and a run to learn from: assay plan --detect 0.02 --from RUN"
        )
    found = find_rows_needed([FinishedRun(run) for run in runs], detect, by)
    if as_json:
        stdout.print_json(json.dumps({"difference": detect, "metrics": [asdict(metric) for metric in found]}))
        return
    headings = ("metric", "rows to see it", "rows to pass", f"rows of {'these runs' if len(runs) > 1 else 'this run'}")
    rows = []
    for metric in found:
        needed = metric.needed
        numbers = ("-", "-") if needed is None else (_rows(needed.to_see), _rows(needed.to_pass))
        groups = "" if metric.groups is None else f" in {metric.groups:,} groups"
        rows.append((metric.metric, *numbers, f"{metric.rows:,}{groups}"))
    stdout.print(f"Rows of a comparison with a difference of {detect:g}, in 80 of 100 cases:")
    print_table(stdout, make_table(headings, rows))
    stdout.print(
        "to see it: a true difference of this size is found after the correction for the number of metrics; to pass: a "
        "gate with this max_drop passes if nothing changed",
        style="dim",
    )
    if any(metric.needed is None for metric in found):
        stdout.print(
            f"-: a variance needs at least {LEAST_OBSERVED} scored rows, or groups of rows",
            style="dim",
        )
    if len(runs) == 1:
        stdout.print(
            "These numbers are for two unrelated systems. Similar systems need fewer rows: give --from twice, with two "
            "runs of the same rows, and the correlation between their scores is used.",
            style="dim",
        )


def _rows(count: int | None) -> str:
    return "over 10 million" if count is None else f"{count:,}"


def _content(metrics: MetricPlan, dry_run: DryRun) -> dict[str, Any]:
    found = {stage.stage: stage_content(stage) for stage in dry_run.stages}
    return {
        "metrics": [request.key for request in metrics.requests],
        "verdict": metrics.verdict,
        "stages": [
            {
                "stage": str(stage),
                "products": {str(product): list(metrics.users_of(product)) for product in metrics.products_of(stage)},
                **found.get(stage, {}),
            }
            for stage in metrics.stages
        ],
        "left_out": {metric: list(columns) for metric, columns in metrics.left_out.items()},
        "rows": dry_run.rows,
        "bad_rows": dry_run.bad_rows,
        "judge": {**asdict(dry_run.tally), "certainty": dry_run.certainty},
        "judges": [
            {"name": name, "kinds": list(dry_run.judges.get(name, ())), **asdict(tally)}
            for name, tally in dry_run.by_judge.items()
        ],
        "spared": dry_run.spared,
        "problems": list(dry_run.problems),
        "contexts": _contexts_content(dry_run.contexts),
        **{name: None if each is None else _part(each.dry_run) for name, each in dry_run.of_findings.items()},
    }


def _part(dry_run: DryRun) -> dict[str, Any]:
    stages = [{"stage": str(stage.stage), **stage_content(stage)} for stage in dry_run.stages]
    judge = {**asdict(dry_run.tally), "certainty": dry_run.certainty}
    return {"rows": dry_run.rows, "stages": stages, "judge": judge, "problems": list(dry_run.problems)}


def _contexts_content(contexts: PendingContexts | None) -> dict[str, Any] | None:
    if contexts is None:
        return None
    fetched = None if contexts.fetched is None else contexts.fetched.isoformat()
    return {"index": contexts.index, "rows": contexts.rows, "fetched": fetched}


def _describe(contexts: PendingContexts) -> str:
    fetched = f"the contexts of {contexts.rows} rows from {contexts.index}"
    if contexts.fetched is not None:
        return (
            f"The run fetches {fetched}. The numbers are for the contexts fetched on "
            f"{contexts.fetched:%Y-%m-%d at %H:%M} UTC; the index may have changed since."
        )
    return (
        f"Retrieval comes first: the run fetches {fetched}, and its questions to the judge depend on them. "
        "No contexts for these user questions are cached; --fetch fetches them now."
    )


def _show(metrics: MetricPlan) -> None:
    keys = ", ".join(request.key for request in metrics.requests)
    count = len(metrics.requests)
    tree = Tree(Text.assemble((f"{count} metric{'s' * (count != 1)}", "bold"), f": {keys}"))
    for number, level in enumerate(LEVELS, start=1):
        needed = [stage for stage in level if stage in metrics.stages]
        if not needed:
            continue
        branch = tree.add(f"level {number}")
        for stage in needed:
            leaf = branch.add(Text(stage, "bold"))
            for product in metrics.products_of(stage):
                users = metrics.users_of(product)
                leaf.add(f"{product}, once for {', '.join(users)}")
    stdout.print(tree)
    for line in left_out_lines(metrics.left_out):
        stdout.print(f"left out, {line}", style="dim")
