"""Traces as samples."""
