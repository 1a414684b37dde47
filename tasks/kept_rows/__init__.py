"""Rows that a run got wrong, kept in a test set until rebuilds of the index have got them right."""
