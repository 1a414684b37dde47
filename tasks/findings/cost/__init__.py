"""The cost of the judge's work."""
