"""Tests of flows.rebuilt."""
