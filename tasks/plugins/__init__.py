"""Plugins: custom metrics, judges, embedders, recognizers and retrievers, loaded by name and checked."""
