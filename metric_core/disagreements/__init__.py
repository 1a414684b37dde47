"""Passages that give different values for the same thing: what texts say, and where they disagree."""
