"""A month of nights on a real Prefect server, with faults that are scripted and messages that are counted."""
