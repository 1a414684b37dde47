"""Finished runs as objects, for programs and notebooks, and their comparison under a gate."""
