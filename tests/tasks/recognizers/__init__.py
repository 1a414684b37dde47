"""Tests of the recognisers of named entities."""
