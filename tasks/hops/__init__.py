"""Hops: the retrievals of answers that were retrieved for several times, what each found, and which lost something."""
