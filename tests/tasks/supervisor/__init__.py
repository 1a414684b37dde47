"""Tests of the supervisor of processes."""
