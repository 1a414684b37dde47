"""Run folders and reports, made from tables."""
