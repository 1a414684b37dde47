"""Tests of `tasks.findings.diagnosis`."""
