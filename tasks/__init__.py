"""Stages and their computation, with the judges, models and stores that they use."""

from tasks.runtime import loaded_files  # notes the state of all source files before they are loaded

__all__ = ["loaded_files"]
