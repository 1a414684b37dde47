"""Show what is known of planted changes of the judge's questions."""

from collections.abc import Iterator

from tasks.documents.calibration.certificate_text import certificate_lines
from tasks.findings.finding import Finding, RunRecords
from tasks.findings.parts import Fact


def certificate_details(run: RunRecords) -> Iterator[str]:
    """Yield lines on the certificate of the judge."""
    yield from (f"planted changes: {line}" for line in certificate_lines(run.record.certificate))


def certificate_facts(run: RunRecords) -> Iterator[Fact]:
    """Yield the lines, for the report."""
    if lines := certificate_lines(run.record.certificate):
        yield Fact("Planted changes", lines)


FINDING = Finding(details=certificate_details, of_judge=certificate_facts)
