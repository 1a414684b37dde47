"""Tests of the kept server."""
