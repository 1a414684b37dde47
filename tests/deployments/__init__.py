"""Tests of the package deployments."""
