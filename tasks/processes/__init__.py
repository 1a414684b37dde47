"""Manage server processes that outlive the command that started them, among them the judge server: vLLM.

Such a process is detached, and is a `Service`: it has a folder with a record (its id and address), a lock and a log.
The local Prefect server and launched judges are services.

vLLM and Prefect cannot share an environment, so vLLM always runs in another process, or in a container. A launched
judge either runs until someone stops it or belongs to a run and ends with it, however the run ends. A home has one
judge at a time, because a judge uses a whole GPU; its record, lock and log are in `home/judge`.
"""
