"""Tests of `tasks.findings.agreement`."""
