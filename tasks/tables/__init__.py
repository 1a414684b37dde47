"""The table store: stage tables as Parquet files."""
