"""Rows whose references may be too old to be true."""
