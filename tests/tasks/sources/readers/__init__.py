"""Tests of `tasks/sources/readers`."""
