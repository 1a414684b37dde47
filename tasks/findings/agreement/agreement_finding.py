"""Show how far the judge agrees with people."""

from collections.abc import Iterator

from tasks.documents.calibration.calibration_text import agreement_lines
from tasks.findings.finding import Finding, RunRecords
from tasks.findings.parts import Fact


def agreement_details(run: RunRecords) -> Iterator[str]:
    """Yield the agreement for each metric that asks a judge."""
    yield from (f"agreement with people: {line}" for line in agreement_lines(run.record))


def agreement_facts(run: RunRecords) -> Iterator[Fact]:
    """Yield the lines, for the report."""
    yield Fact("Agreement with people", agreement_lines(run.record))


FINDING = Finding(details=agreement_details, of_judge=agreement_facts)
