"""Databases that several processes and machines share: SQLite files, and PostgreSQL."""
