"""Tests of `flows.findings.anchor`."""
