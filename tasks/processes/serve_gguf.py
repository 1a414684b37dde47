"""Serve a GGUF file with llama.cpp: the program that a judge without a GPU is launched with.

    python serve_gguf.py --model FILE --alias NAME --host 127.0.0.1 --port 8000 --slots 1 --window 8192 [NAME=VALUE ...]

It runs in the environment that `assay judge install --cpu` makes and is started by its path, so it imports nothing of
rag-assay. NAME=VALUE sets a parameter of llama.cpp, `flash_attn_type=1` or `cpuparams.poll=0`, say.
"""

import argparse
import importlib
import json
import signal
from functools import reduce
from typing import Any


def main() -> None:
    """Serve until the process is asked to end."""
    parser = argparse.ArgumentParser()
    for name in ("model", "alias", "host"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("port", "slots", "window", "threads", "kept-mib"):
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("parameters", nargs="*", metavar="NAME=VALUE")
    given = parser.parse_args()
    llama = importlib.import_module("xllamacpp")
    parameters = llama.CommonParams()
    parameters.model.path = given.model
    parameters.model_alias = {given.alias}
    parameters.hostnames, parameters.port = [given.host], given.port
    parameters.n_parallel, parameters.n_ctx = given.slots, given.slots * given.window
    parameters.cpuparams.n_threads = parameters.cpuparams_batch.n_threads = given.threads
    parameters.cache_ram_mib = given.kept_mib
    parameters.ui = False
    for each in given.parameters:
        _set(parameters, *each.split("=", 1))
    server = llama.Server(parameters)
    print(f"serving {given.alias} at {server.listening_address}", flush=True)  # noqa: T201 its log
    signal.sigwait({signal.SIGTERM, signal.SIGINT})


def _set(parameters: Any, name: str, value: str) -> None:
    *path, last = name.split(".")
    owner = reduce(getattr, path, parameters)
    before = getattr(owner, last)  # a name that does not exist is an error
    setattr(owner, last, value if isinstance(before, str) else json.loads(value))


if __name__ == "__main__":
    main()
