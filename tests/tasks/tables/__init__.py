"""Tests of the table store."""
