"""Tests of reading sources."""
