"""Tests of `flows/publishing`."""
