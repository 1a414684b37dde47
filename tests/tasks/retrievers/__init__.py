"""Contexts that come from the index itself."""
