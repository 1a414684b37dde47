"""Tests of profiles of verifiers."""
