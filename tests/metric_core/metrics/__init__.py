"""Tests of `metric_core/metrics`."""
