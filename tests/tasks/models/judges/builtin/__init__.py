"""Tests of the builtin judge."""
