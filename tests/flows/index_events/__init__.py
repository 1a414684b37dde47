"""Tests of flows.index_events."""
