"""Tests of what benchmarks calculate themselves."""
