"""Tests of flows.options."""
