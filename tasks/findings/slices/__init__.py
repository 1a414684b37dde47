"""Slices of a run: parts of its rows by the values of columns."""
