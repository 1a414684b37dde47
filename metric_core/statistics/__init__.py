"""Summaries of scores: means, intervals, counts."""
