"""Tests of the finding `panel`."""
