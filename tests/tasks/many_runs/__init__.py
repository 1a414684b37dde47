"""Tests of `tasks.many_runs`."""
