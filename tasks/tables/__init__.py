"""The Parquet store of stage tables."""
