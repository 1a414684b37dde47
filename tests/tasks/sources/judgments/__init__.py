"""Tests of relevance judgments."""
