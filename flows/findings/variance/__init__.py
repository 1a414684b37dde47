"""Computation of the judge's part in the variance of means."""
