"""Prefect flows: the stages of a run, their order and their rows."""
