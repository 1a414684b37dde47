"""Serve small models with vLLM for CPUs, each by a server of its own. Runs in the environment of `just judge-cpu`.

    python serve_models.py '[["--model", "one", "--port", "8001"], ["--model", "two", "--port", "8002"]]'

vLLM is imported once, and each server is a fork. On CPUs vLLM would start a new Python for its engine and another for
its worker, each of which imports everything again; they are forks too, so four servers start in about the time of one.
"""

import importlib
import json
import multiprocessing
import os
import sys

PARTS = (
    "vllm.entrypoints.launchers.api_server.entry",
    "vllm.utils.system_utils",
    "vllm.entrypoints.openai.api_server",
    "vllm.v1.engine.core",
    "vllm.v1.engine.core_client",
    "vllm.v1.engine.utils",
    "vllm.v1.executor.multiproc_executor",
    "vllm.v1.worker.cpu_worker",
)
"""Modules that a server, its engine and its worker import."""


def main() -> None:
    """Start a server for each list of arguments, and wait until all have ended."""
    entry, system_utils, *_ = map(importlib.import_module, PARTS)
    original = system_utils.get_mp_context
    for module in list(sys.modules.values()):
        if vars(module).get("get_mp_context") is original:
            vars(module)["get_mp_context"] = lambda: multiprocessing.get_context("fork")
    servers = []
    for arguments in json.loads(sys.argv[1]):
        server = os.fork()
        if server == 0:
            sys.argv = ["vllm", *arguments]
            entry.main()
            os._exit(0)
        servers.append(server)
    for server in servers:
        os.waitpid(server, 0)


if __name__ == "__main__":
    main()
