"""The configuration of a run: option groups, gate files, and loading."""
