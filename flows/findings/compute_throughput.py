"""Measure how fast the judge servers of a run have answered."""

from flows.findings.run_finding import ComputedRun, Found, RunFinding
from tasks.metering.meter import current_meter
from tasks.metering.throughput import measure_servers


def measure_throughput(run: ComputedRun) -> Found:
    """Return how fast servers have answered the questions about the rows of a run."""
    meter = current_meter()
    return Found(None if meter is None else measure_servers(meter.records(), run.rows))


FINDING = RunFinding(compute=measure_throughput)
