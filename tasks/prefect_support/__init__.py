"""Adapters to Prefect: locks, stored results and concurrency limits."""
