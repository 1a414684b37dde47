"""Passages that disagree: in the rows of a run, and within an index."""
