"""Describe the cost of a run, and what its judge servers did per second."""

from collections.abc import Iterator

from tasks.metering.money import money_text
from tasks.record.cost import CostRecord, ThroughputRecord


def cost_lines(cost: CostRecord | None) -> Iterator[str]:
    """Yield the price of the judge's work, if it has one.

    >>> list(cost_lines(CostRecord(currency="USD", total=0.5, prompt=0.5, cached_prompt=0, output=0, gpu=0)))
    ['cost of the judge: 0.50 USD']
    """
    if (money := money_text(cost)) is not None:
        yield f"cost of the judge: {money}"


def throughput_lines(throughput: ThroughputRecord | None) -> Iterator[str]:
    """Yield the rows and tokens per second of each judge server, and the conversations that it had in flight."""
    for server in () if throughput is None else throughput.servers:
        prompt, output = server.prompt_tokens_per_second, server.output_tokens_per_second
        if server.rows_per_second is None or prompt is None or output is None:
            continue
        yield (
            f"judge server {server.server}: {server.rows_per_second:.3g} rows/s, {prompt:,.0f} uncached prompt "
            f"tokens/s and {output:,.0f} output tokens/s, {server.in_flight:.0f} of {server.slots} "
            "conversations in flight"
        )
