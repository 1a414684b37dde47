"""Tests of `tasks.findings`."""
