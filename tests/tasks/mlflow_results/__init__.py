"""Tests of results on MLflow servers."""
