"""Recognizers of named entities."""
