"""Whole evaluations judged by a language model that judges above chance, on this machine's processors."""
