"""The record of a run: the content of run.json and summary.json, as types."""
