"""Tests of `tasks.findings.cascade` with whole runs."""
