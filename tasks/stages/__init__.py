"""The stages, one per module, with their registry and their Prefect tasks."""
