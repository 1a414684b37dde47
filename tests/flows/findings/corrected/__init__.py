"""Tests of the finding `corrected`."""
