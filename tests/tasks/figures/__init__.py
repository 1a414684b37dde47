"""Tests of `tasks.figures`."""
