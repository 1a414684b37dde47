"""Tests of metrics and models of the user's own."""
