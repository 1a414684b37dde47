"""Tests of flows.running."""
