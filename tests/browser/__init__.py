"""Tests that look at the report in a real browser."""
