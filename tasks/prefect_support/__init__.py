"""Adapters to Prefect: concurrency limits, patience with its server, and pages of its lists."""
