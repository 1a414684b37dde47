"""Meter what a run asks of its judge, and write its cost into run.json."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from flows.config.run_config import RunConfig
from tasks.metering.meter import Meter, current_meter, use_meter
from tasks.metering.money import money_of
from tasks.metering.throughput import throughput_entry
from tasks.runtime.usage import StageUsage, Usage
from tasks.tables.table_store import StageRef


def meter_run(config: RunConfig) -> AbstractContextManager[Meter]:
    """Count the requests of a block to the judge of a run, and end it once its budget is spent.

    Args:
        config: Configuration of the run, with prices and the budget.
    """
    return use_meter(Meter(config.prices, config.budget))


def count_elsewhere(usage: StageUsage) -> None:
    """Count what a stage asked in another process, where the run has no meter.

    Args:
        usage: Cost of the stage's table, which was computed in this run.

    Raises:
        BudgetSpentError: The budget is spent.
    """
    if (meter := current_meter()) is not None:
        meter.count_elsewhere(_usage_of(usage))


def cost_entry(config: RunConfig, refs: Sequence[StageRef], anchor: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the entry `cost` of run.json: the money that the questions of a run have cost, with those of its anchor.

    Args:
        config: Configuration of the run.
        refs: Tables of all stages and shards.
        anchor: Entry of the anchor in run.json; None without an anchor.

    Returns:
        The entry; None if nothing has a price.
    """
    meter, usage = current_meter(), sum((_usage_of(ref.usage) for ref in refs), Usage())
    asked = (anchor or {}).get("usage") or {}
    names = ("requests", "prompt_tokens", "cached_tokens", "output_tokens")
    usage += Usage(**{name: asked.get(name, 0) for name in names})
    money = money_of(config.prices, usage, 0.0 if meter is None else meter.usage.seconds)
    return None if money is None else money.to_json()


def measure_throughput(rows: int) -> dict[str, Any] | None:
    """Return the entry `throughput` of run.json for the requests so far; None if no server was asked.

    Args:
        rows: Number of rows that were evaluated.
    """
    meter = current_meter()
    return None if meter is None else throughput_entry(meter.records(), rows)


def spent_entry() -> dict[str, Any]:
    """Return the entries of run.json on what a run that did not finish has asked and cost."""
    meter = current_meter()
    if meter is None:
        return {}
    usage, money = meter.usage, meter.money
    names = ("requests", "prompt_tokens", "cached_tokens", "output_tokens", "seconds")
    spent = {name: getattr(usage, name) for name in names}
    return {"usage": spent, "cost": None if money is None else money.to_json()} if usage.requests else {}


def _usage_of(usage: StageUsage) -> Usage:
    return Usage(
        requests=usage.requests,
        prompt_tokens=usage.prompt_tokens,
        cached_tokens=usage.cached_tokens,
        output_tokens=usage.output_tokens,
    )
