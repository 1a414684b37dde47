"""Say what the questions of a run have cost, and how near it came to the limit of its judge server."""

from collections.abc import Iterator, Mapping
from typing import Any

from tasks.metering.money import money_text


def cost_lines(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Yield the price of the judge's work, if it has one.

    Args:
        manifest: Content of run.json; that of an earlier version has no entry about cost.

    >>> entry = {"currency": "USD", "total": 0.5, "prompt": 0.5, "cached_prompt": 0.0, "output": 0.0, "gpu": 0.0}
    >>> list(cost_lines({"cost": entry}))
    ['cost of the judge: 0.50 USD']
    """
    if (money := money_text(manifest.get("cost"))) is not None:
        yield f"cost of the judge: {money}"
