"""Tests of `deployments.label_studio`."""
