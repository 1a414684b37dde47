"""Dry runs: count what a run would reuse and what it would ask."""
