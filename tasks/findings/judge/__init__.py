"""The judge of a run."""
