"""Manage server processes that outlive the command that started them.

Such a process is detached and has a folder with a record (its id and address), a lock and a log. The launcher of judges
and the local Prefect server are built on this.
"""
