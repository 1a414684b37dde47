"""Tests of metric_core: metrics, records, prompts, statistics, gates, calibration."""
