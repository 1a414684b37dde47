"""Judges: one protocol and its backends."""
