"""Verdicts that the cheaper judge of a cascade gave."""
