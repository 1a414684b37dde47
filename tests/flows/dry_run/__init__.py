"""Tests of flows.dry_run."""
