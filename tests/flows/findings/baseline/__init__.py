"""Tests of the finding `baseline`."""
