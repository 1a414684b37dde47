"""Tests of `tasks/processes`."""
