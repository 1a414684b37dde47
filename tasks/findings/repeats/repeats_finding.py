"""Declare the rows of a run that were asked about again, which other findings read."""

from tasks.findings.finding import Finding
from tasks.findings.repeats.repeat_record import AskedAgain

FINDING = Finding(record=(AskedAgain,))
