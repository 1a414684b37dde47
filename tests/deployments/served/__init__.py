"""Deployments on a whole Prefect server, with a worker: what runs by itself."""
