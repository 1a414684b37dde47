"""Tests of the stages and their adapters."""
