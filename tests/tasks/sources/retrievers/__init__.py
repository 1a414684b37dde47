"""Tests of `tasks/sources/retrievers`."""
