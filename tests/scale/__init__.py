"""Runs on Dask and Ray, with PostgreSQL and S3."""
