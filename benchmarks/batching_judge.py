"""The stub judge of the peer benchmark, as a model of a GPU, with vLLM's endpoint of many conversations.

    python -m benchmarks.batching_judge --port 8123 --prefill-tps 55000

`POST /v1/chat/completions/batch` has a list of conversations as `messages` and common parameters. Each conversation is
computed like a request of its own, and the reply comes when all are done. As in vLLM, usage is a sum
without cached tokens.
"""

import argparse
import asyncio
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

STUB = Path(__file__).resolve().parents[2] / "shared" / "peer" / "judge_stub.py"
BATCH = "/v1/chat/completions/batch"
SETTINGS = {
    "latency_ms": 0,
    "embed_latency_ms": 20,
    "concurrency": 0,
    "dim": 384,
    "gpu": True,
    "step_ms": 25,
    "max_num_seqs": 256,
    "cache_tokens": 400_000,
    "fail_every": 0,
    "fail_status": 429,
    "bad_json_every": 0,
    "max_seconds": 3600,
    "max_requests": 10**9,
}
"""Settings of the stub, as its options would set them."""


def load_stub() -> ModuleType:
    """Load the module of the stub judge."""
    if not STUB.is_file():
        sys.exit(f"the stub judge is missing: no {STUB}")
    spec = importlib.util.spec_from_file_location("judge_stub", STUB)
    assert spec is not None
    assert spec.loader is not None
    stub = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(stub)
    return stub


def main() -> None:
    """Serve until an hour has passed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=8123)
    parser.add_argument("--prefill-tps", type=float, default=20_000, help="uncached prompt tokens per second")
    parser.add_argument("--max-num-seqs", type=int, default=256, help="sequences at once")
    options = parser.parse_args()
    stub: Any = load_stub()
    stub.A = argparse.Namespace(**{**SETTINGS, **vars(options)})
    route_single = stub.route

    async def route(method: str, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if path != BATCH:
            return await route_single(method, path, body)  # type: ignore[no-any-return]
        return merge(await asyncio.gather(*(stub.chat({**body, "messages": each}) for each in body["messages"])))

    stub.route = route
    asyncio.run(stub.main())


def merge(replies: list[tuple[int, dict[str, Any]]]) -> tuple[int, dict[str, Any]]:
    """Return the reply to a batch, or the first error."""
    for status, reply in replies:
        if status != 200:
            return status, reply
    choices = [{**reply["choices"][0], "index": index} for index, (_, reply) in enumerate(replies)]
    usage = {name: sum(reply["usage"][name] for _, reply in replies) for name in replies[0][1]["usage"]}
    return 200, {**replies[0][1], "choices": choices, "usage": usage}


if __name__ == "__main__":
    main()
