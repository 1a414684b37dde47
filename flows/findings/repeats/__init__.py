"""Computation of rows of a run that are asked about again."""
