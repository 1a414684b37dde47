"""Tests of rows that are kept in a test set."""
