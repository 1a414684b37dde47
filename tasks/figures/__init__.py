"""Figures of the system that answers: the quantiles of its seconds, tokens and costs."""
