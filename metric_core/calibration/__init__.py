"""Calibration: agreement of judges with people, and correction of their scores."""
