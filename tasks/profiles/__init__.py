"""Profiles of verifiers as data: packaged ones, and the format of user-defined ones."""
