"""Tests of `deployments.many_runs`."""
