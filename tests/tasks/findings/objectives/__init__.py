"""Tests of `tasks.findings.objectives`."""
