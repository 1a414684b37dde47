"""Tests of finding spans of evidence in chunks."""
