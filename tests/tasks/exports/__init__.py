"""Tests of the scores that other programs get."""
