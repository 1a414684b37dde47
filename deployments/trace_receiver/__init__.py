"""Receive traces over HTTP and write them to files that a run reads."""
