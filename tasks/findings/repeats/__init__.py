"""Rows of a run that were asked about again."""
