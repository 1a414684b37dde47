"""Declare the rows of a run that were asked about again, which other findings read."""

from tasks.findings.finding import Finding
from tasks.record.repeats import AskedAgain

FINDING = Finding(record=(AskedAgain,))
