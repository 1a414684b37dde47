"""Bias-corrected means."""
