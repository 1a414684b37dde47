"""Watch the runs of an evaluation: what the last ones say together, and the words for it."""
