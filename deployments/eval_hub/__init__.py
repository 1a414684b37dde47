"""Runs jobs of eval-hub."""
