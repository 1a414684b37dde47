"""Tests of `tasks.findings.repeats`."""
