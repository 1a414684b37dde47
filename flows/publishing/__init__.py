"""Publish what a run found: artifacts, an entry in the history, a file of metrics."""
