"""Tests of `metric_core.disagreements`."""
