"""Tests of the row store."""
