"""Deployments: what they are, and how they reach a Prefect server."""
