"""Compute the stages of a run: rows are looked up in the row store, and the others computed window by window."""
