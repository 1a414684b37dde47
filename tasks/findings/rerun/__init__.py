"""The part of a run that a rerun computed again."""
