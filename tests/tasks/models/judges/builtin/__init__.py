"""Tests of the built-in judge."""
