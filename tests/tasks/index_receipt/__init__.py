"""Tests of the questions that are written from an index."""
