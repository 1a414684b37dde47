"""Tests of flows.execution."""
