"""Tests of the answer cache."""
