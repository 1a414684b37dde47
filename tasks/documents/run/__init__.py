"""Words and tables on a run."""
