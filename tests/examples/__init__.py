"""Tests of the example data."""
