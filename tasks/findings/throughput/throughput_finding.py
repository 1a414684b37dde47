"""Show what the judge servers did per second."""

from collections.abc import Iterator

from tasks.findings.finding import Finding, RunRecords
from tasks.metering.throughput import ThroughputRecord


def throughput_lines(run: RunRecords) -> Iterator[str]:
    """Return a line on each judge server."""
    return describe_servers(run.record.find(ThroughputRecord))


def describe_servers(throughput: ThroughputRecord | None) -> Iterator[str]:
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


FINDING = Finding(record=(ThroughputRecord,), details=throughput_lines, notes=throughput_lines)
