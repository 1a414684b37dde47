"""Describe the cost of a run, and how near it came to the limit of its judge server."""

from collections.abc import Iterator, Mapping
from typing import Any

from tasks.metering.money import money_text
from tasks.runtime.wording import format_percent


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


_HELD_BACK = {
    "server": "the server held it back",
    "client": "this process held it back: it computed while the server had too little to do",
    "store": "the store held it back: stages waited for it",
    "questions": "too few questions were ready: they depend on answers, or on the start and the end of the run",
}


def throughput_lines(manifest: Mapping[str, Any]) -> Iterator[str]:
    """Yield how near a run came to the limit of each of its judge servers, and what held it back.

    Args:
        manifest: Content of run.json; that of an earlier version has no entry about throughput.

    >>> server = {"server": "http://gpu/v1", "prompt_tokens_per_second": 53123.4, "output_tokens_per_second": None}
    >>> server |= {"rows_per_second": 11.83, "limit_rows_per_second": 13.04, "share_of_limit": 0.907}
    >>> server |= {"held_back_by": "server", "is_lower_bound": False, "cached_tokens": 12}
    >>> for line in throughput_lines({"throughput": {"servers": [server]}}):
    ...     print(line)
    judge server http://gpu/v1: 11.8 rows/s, 91 % of its limit of 13 (53,123 prompt tokens/s); the server held it back
    """
    for server in (manifest.get("throughput") or {}).get("servers", ()):
        if server.get("share_of_limit") is None:
            continue
        rates = [
            f"{server[name]:,.0f} {words}/s"
            for name, words in (
                ("prompt_tokens_per_second", "prompt tokens"),
                ("output_tokens_per_second", "output tokens"),
            )
            if server[name] is not None
        ]
        measured = f" ({' and '.join(rates)})" if rates else ""
        speed = f"judge server {server['server']}: {server['rows_per_second']:.3g} rows/s"
        cause = _HELD_BACK[server["held_back_by"]]
        if server["is_lower_bound"]:
            yield f"{speed}, below its limit, which is not known: it never had enough to do{measured}; {cause}"
        else:
            limit = format_percent(server["share_of_limit"])
            yield f"{speed}, {limit} of its limit of {server['limit_rows_per_second']:.3g}{measured}; {cause}"
