"""Keep a server process that outlives the command that started it.

Such a process is detached and has a folder with a record (which process it is and where it listens), a lock and a log.
The launcher of judges and the local Prefect server are built on this.
"""
