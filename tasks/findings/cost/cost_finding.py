"""Show what the judge's work has cost."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tasks.findings.finding import Finding, RunRecords
from tasks.metering.cost import CostRecord
from tasks.metering.money import money_text
from tasks.record.findings import Findings


def cost_lines(run: RunRecords) -> Iterator[str]:
    """Yield the price of the judge's work, if it has one."""
    if (money := money_text(run.record.find(CostRecord))) is not None:
        yield f"cost of the judge: {money}"


def cost_columns(runs: Sequence[Findings]) -> Mapping[str, Any]:
    """Return the cost of each run, and the currency of the latest whose cost is known; empty if there is none."""
    costs = [run.find(CostRecord) for run in runs]
    currency = next((cost.currency for cost in reversed(costs) if cost is not None), "")
    return {"money": {"values": [None if cost is None else cost.total for cost in costs], "currency": currency}}


FINDING = Finding(record=(CostRecord,), lines=cost_lines, notes=cost_lines, history=cost_columns)
