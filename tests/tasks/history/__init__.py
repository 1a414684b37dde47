"""Tests of `tasks.history`."""
