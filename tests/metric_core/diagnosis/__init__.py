"""Tests of `metric_core.diagnosis`."""
