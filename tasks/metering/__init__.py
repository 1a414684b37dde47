"""Measure what a run asks of its judge: time, tokens, money, and what held it back."""
