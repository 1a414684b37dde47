"""Tests of flows.results."""
