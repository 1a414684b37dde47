"""Tests of the finding `cost`."""
