"""Faults in the middle of an evaluation: real processes, real Prefect, nothing mocked."""
