"""Gates: rules about the scores of a run, and what they say of it."""
