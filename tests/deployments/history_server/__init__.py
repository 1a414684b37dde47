"""Tests of `deployments.history_server`."""
