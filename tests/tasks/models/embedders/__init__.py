"""Tests of `tasks/opening/embedders`."""
