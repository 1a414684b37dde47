"""Tests of `tasks.database`."""
