"""Stages and their computation, with the judges, models and stores that they use."""
