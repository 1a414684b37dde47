"""Tests of `tasks.findings.judge`."""
