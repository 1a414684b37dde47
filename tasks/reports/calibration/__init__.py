"""Calibrations as text."""
