"""Tests of the windows of a shard."""
