"""Faults during an evaluation, with real processes and a real Prefect server."""
