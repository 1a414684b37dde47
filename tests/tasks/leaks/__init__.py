"""Tests of `tasks.leaks`."""
