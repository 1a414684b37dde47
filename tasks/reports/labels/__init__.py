"""The page on which people label what was drawn from a run."""
