"""Tests of `tasks.findings.slices`."""
