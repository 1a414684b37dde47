"""Tests of the hops of an answer: retrievals that follow one another."""
