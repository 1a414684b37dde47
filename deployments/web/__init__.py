"""Serve HTTP: guard and limits shared by all servers of this package."""
