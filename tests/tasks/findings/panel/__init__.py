"""Tests of `tasks.findings.panel`."""
