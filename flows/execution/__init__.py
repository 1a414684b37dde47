"""Shared parts of `evaluate`, `rerun` and `calibrate`: stages, shards, runners and run records."""
