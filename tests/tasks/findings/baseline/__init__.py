"""Tests of `tasks.findings.baseline`."""
