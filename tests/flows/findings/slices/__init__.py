"""Tests of the finding `slices`."""
