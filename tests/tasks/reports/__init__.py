"""Tests of what is made from tables: run folders and reports."""
