"""Tests of tasks.runs."""
