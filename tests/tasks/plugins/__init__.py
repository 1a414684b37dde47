"""Tests of plugins: custom metrics and models."""
