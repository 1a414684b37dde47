"""Tests of tasks.engine."""
