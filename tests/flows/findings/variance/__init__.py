"""Tests of `flows.findings.variance`."""
