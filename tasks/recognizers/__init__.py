"""Recognisers of named entities."""
