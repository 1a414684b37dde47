"""Findings of a run about itself; each is a room, which a line of the table names."""
