"""The options of a run, in groups, each declared once."""
