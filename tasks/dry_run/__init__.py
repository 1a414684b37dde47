"""Dry runs: judges that count what would be asked and answer nothing."""
