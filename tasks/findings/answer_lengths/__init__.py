"""Lengths of the answers of two runs."""
