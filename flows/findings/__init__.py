"""Computation of the findings of a run, besides that of its rows."""
