"""Describe the cost of a run, and what its judge servers did per second."""

from collections.abc import Iterator, Mapping
from typing import Any

from tasks.metering.money import money_text


def cost_lines(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Yield the price of the judge's work, if it has one.

    Args:
        manifest: Content of run.json.

    >>> entry = {"currency": "USD", "total": 0.5, "prompt": 0.5, "cached_prompt": 0.0, "output": 0.0, "gpu": 0.0}
    >>> list(cost_lines({"cost": entry}))
    ['cost of the judge: 0.50 USD']
    """
    if (money := money_text(manifest.get("cost"))) is not None:
        yield f"cost of the judge: {money}"


def throughput_lines(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Yield the rows and tokens per second of each judge server, and the conversations that it had in flight.

    Args:
        manifest: Content of run.json.

    >>> server = {"server": "http://gpu/v1", "rows_per_second": 11.83, "in_flight": 96.2, "slots": 128}
    >>> server |= {"prompt_tokens_per_second": 53123.4, "output_tokens_per_second": 210.0}
    >>> [line] = throughput_lines({"throughput": {"servers": [server]}})
    >>> line.partition(", ")[2]
    '53,123 uncached prompt tokens/s and 210 output tokens/s, 96 of 128 conversations in flight'
    """
    for server in (manifest.get("throughput") or {}).get("servers", ()):
        if server["rows_per_second"] is None:
            continue
        prompt, output = server["prompt_tokens_per_second"], server["output_tokens_per_second"]
        yield (
            f"judge server {server['server']}: {server['rows_per_second']:.3g} rows/s, {prompt:,.0f} uncached prompt "
            f"tokens/s and {output:,.0f} output tokens/s, {server['in_flight']:.0f} of {server['slots']} "
            "conversations in flight"
        )
