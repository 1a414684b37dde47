"""Gates: rules about the scores of a run, and their outcomes."""
