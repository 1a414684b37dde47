"""Parse what users write: metrics with parameters, JSON, and misspelled names."""
