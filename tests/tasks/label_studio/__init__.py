"""Tests of `tasks.label_studio`."""
