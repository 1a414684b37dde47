"""Metrics: one file per family, with pure functions and the declarations of their metrics."""
