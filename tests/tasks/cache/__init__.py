"""Tests of the store of answers."""
