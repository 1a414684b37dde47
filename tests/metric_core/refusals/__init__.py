"""Tests of `metric_core/refusals`."""
