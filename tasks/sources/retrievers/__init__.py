"""Fetch contexts, and optionally responses, from an HTTP endpoint or a Python object."""
