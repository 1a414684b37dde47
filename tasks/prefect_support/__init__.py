"""Adapters to Prefect: locks, stored results, concurrency limits, secret blocks."""
