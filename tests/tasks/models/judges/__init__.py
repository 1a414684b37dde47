"""Tests of `tasks/models/judges`."""
