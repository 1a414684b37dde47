"""Tests of the recognizers of named entities."""
