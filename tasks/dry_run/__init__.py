"""Dry runs: judges that count the questions that a run would ask."""
