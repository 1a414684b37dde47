"""Computation of what the outcomes of a run hang on: the verdicts of its second judge."""
