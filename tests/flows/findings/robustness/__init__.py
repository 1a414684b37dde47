"""Tests of what runs compute for what their outcomes hang on."""
