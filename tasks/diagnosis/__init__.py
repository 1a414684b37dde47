"""Diagnosis of runs: the table of a run folder, its counts, and what changed between two runs."""
