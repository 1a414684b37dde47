"""Tests of flows.planning."""
