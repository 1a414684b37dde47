"""Tests of `tasks/sources/cells`."""
