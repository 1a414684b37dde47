"""Tests of the finding `certificate`."""
