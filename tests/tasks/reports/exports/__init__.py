"""Tests of `tasks/reports/exports`."""
