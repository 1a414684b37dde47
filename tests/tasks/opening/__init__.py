"""Tests of `tasks/opening`."""
