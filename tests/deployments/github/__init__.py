"""Tests of the GitHub Action."""
