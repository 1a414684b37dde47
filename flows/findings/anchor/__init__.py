"""Computation of the anchor of a run."""
