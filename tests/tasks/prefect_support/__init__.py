"""Tests of the adapters to Prefect."""
