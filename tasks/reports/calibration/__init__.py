"""Calibrations in words."""
