"""Checks that a metric reads what it declares, reads what plugins compute, and returns scores as declared."""
