"""The judge's part in the variance of means."""
