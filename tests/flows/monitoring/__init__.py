"""Tests of flows.monitoring."""
