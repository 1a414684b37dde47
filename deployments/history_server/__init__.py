"""Serve the history on this machine, so that any two runs can be compared at a click."""
