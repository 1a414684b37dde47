"""Tests of `tasks.findings.anchor`."""
