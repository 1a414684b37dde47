"""Fetch contexts, and responses on request, from an index: from an HTTP endpoint or a Python object."""
