"""Comparison of two finished runs."""
