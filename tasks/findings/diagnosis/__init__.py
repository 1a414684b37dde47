"""Diagnosis of the answers of a run, counted by class."""
