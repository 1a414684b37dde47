"""The run that a run was compared with."""
