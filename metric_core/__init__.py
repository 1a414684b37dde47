"""Definitions of scores: records, Arrow schemas, metrics and their arithmetic. No I/O, no framework."""
