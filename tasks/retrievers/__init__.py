"""Fetches contexts, and answers where wanted, from the index itself: from an HTTP endpoint or an object of Python."""
