"""Recognizers of languages, sentences and named entities."""
