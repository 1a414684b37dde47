"""Tests of `tasks.findings.corrected`."""
