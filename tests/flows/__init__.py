"""Tests of the flows."""
