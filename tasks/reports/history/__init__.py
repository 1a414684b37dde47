"""The history of an evaluation for readers: text, JSON, and the offline page."""
