"""Specify deployments, and apply them to a Prefect server."""
