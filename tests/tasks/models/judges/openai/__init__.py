"""Tests of the server judge."""
