"""Runs that are finished: their folders, what of them is carried on, and what differs between two."""
