"""Tests of `deployments/web`."""
