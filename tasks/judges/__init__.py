"""Judges: one protocol, several backends."""
