"""Models that answer nothing and count what would be asked."""
