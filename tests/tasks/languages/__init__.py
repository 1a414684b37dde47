"""Tests of scripts and languages."""
