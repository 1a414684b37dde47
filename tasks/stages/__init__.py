"""Stages, one file each; their registry; the wrapper that makes them Prefect tasks."""
