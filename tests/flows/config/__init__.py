"""Tests of flows.config."""
