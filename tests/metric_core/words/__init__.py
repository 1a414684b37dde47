"""Tests of `metric_core.words`."""
