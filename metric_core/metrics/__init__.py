"""Metrics: one file per family, with pure functions and the declarations of its metrics; a guide to each metric."""
