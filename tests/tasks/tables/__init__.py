"""Tests of the Parquet store of stage tables."""
