"""Tests of `flows.findings`."""
