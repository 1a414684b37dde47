"""Tests of `tasks.diagnosis`."""
