"""The stages, one file each, and the wrapper that makes them Prefect tasks."""
