"""Tests of `tasks.disagreements`."""
