"""The stub judge of the peer benchmark as a model of a GPU, in a tenth of its CPU time.

    python -m benchmarks.modelled_gpu --port 8123 --prefill-tps 55000

Replies, counts and modelled time are those of the stub with `--gpu`: prompt tokens that no earlier prompt began with
wait for a shared prefill budget, then each output token takes a step, with a limited number of sequences at once. With
`--batches` it knows vLLM's endpoint of many conversations, too: each conversation is computed like a request of its
own, and the reply comes when all are done, with the sum of their tokens.

On a machine with two cores, the time that a stub takes for itself is missing to the client beside it, and delays what
it models. So this one has no task, no stream and no lock per conversation: the time at which a reply is due is known
when its request arrives.
"""

import argparse
import asyncio
import hashlib
import heapq
import time
from collections import Counter, OrderedDict
from typing import Any

import orjson

from benchmarks.peer_stub import load_stub

BATCH = "/v1/chat/completions/batch"
BLOCK = 64
"""Characters of a block of 16 tokens."""

EMBED_SECONDS = 0.02


class Gpu:
    """A model of the time that a server takes; it works with any clock.

    Args:
        prefill_tps: Uncached prompt tokens per second.
        step_s: Seconds per output token of a sequence.
        max_num_seqs: Sequences at once.
        cache_tokens: Tokens of the prefix cache.
    """

    def __init__(self, prefill_tps: float, step_s: float, max_num_seqs: int, cache_tokens: int) -> None:
        self._prefill_tps = prefill_tps
        self._step_s = step_s
        self._seats = max_num_seqs
        self._room = cache_tokens // 16
        self._blocks: OrderedDict[int, None] = OrderedDict()
        self._ends: list[float] = []
        self._free_at = 0.0
        self.cached_tokens = 0
        self.idle_s = 0.0
        """Seconds without prefill since the first prompt."""

    def serve(self, text: str, output_tokens: int, now: float) -> float:
        """Return when the reply to a prompt that arrives now is complete.

        Args:
            text: The prompt.
            output_tokens: Tokens of the reply.
            now: Time in seconds; later calls have later times.
        """
        while self._ends and self._ends[0] <= now:
            heapq.heappop(self._ends)
        seated = now if len(self._ends) < self._seats else heapq.heappop(self._ends)
        if self._free_at:
            self.idle_s += max(0.0, seated - self._free_at)
        self._free_at = max(seated, self._free_at) + self._uncached_tokens(text) / self._prefill_tps
        end = self._free_at + output_tokens * self._step_s
        heapq.heappush(self._ends, end)
        return end

    def _uncached_tokens(self, text: str) -> int:
        digest, cached, is_hit, blocks = 0, 0, True, self._blocks
        for start in range(0, len(text) - BLOCK + 1, BLOCK):
            digest = hash((digest, text[start : start + BLOCK]))
            if is_hit and digest in blocks:
                blocks.move_to_end(digest)
                cached += 16
            else:
                is_hit = False
                blocks[digest] = None
                if len(blocks) > self._room:
                    blocks.popitem(last=False)
        self.cached_tokens += cached
        return max((len(text) + 3) // 4 - cached, 1)


class Judge:
    """The replies and the counts of the stub.

    Args:
        stub: Module of the stub.
        gpu: Model of its time.
        batches: True if it knows the endpoint of many conversations.
    """

    def __init__(self, stub: Any, gpu: Gpu, *, batches: bool) -> None:
        self._stub = stub
        self._gpu = gpu
        self._batches = batches
        self._counts: Counter[str] = Counter()

    def answer(self, path: str, body: dict[str, Any], now: float) -> tuple[float, int, Any]:
        """Return when a reply is due, its status and its content."""
        if path == "/v1/chat/completions":
            end, choices, usage = self._complete(body, body["messages"], now)
            return end, 200, _completion(body, choices, usage)
        if path == BATCH and self._batches:
            done = [self._complete({**body, "n": 1}, messages, now) for messages in body["messages"]]
            choices = [{**made[0], "index": index} for index, (_, made, _) in enumerate(done)]
            usages = [usage for *_, usage in done]
            usage = {name: sum(each[name] for each in usages) for name in usages[0]}
            return max(end for end, *_ in done), 200, _completion(body, choices, usage)
        if path == "/v1/embeddings":
            self._counts["embed_requests"] += 1
            status, reply = _finish(self._stub.embed(body))
            return now + EMBED_SECONDS, status, reply
        if path == "/v1/models":
            card = {"id": "stub", "object": "model", "created": 0, "owned_by": "stub", "max_model_len": 32768}
            return now, 200, {"object": "list", "data": [card]}
        pages = {"/stats": self.stats(), "/health": {"ok": True}}
        return (now, 200, pages[path]) if path in pages else (now, 404, {"error": {"message": f"not found {path}"}})

    def stats(self) -> dict[str, Any]:
        """Return the counts so far."""
        names = ("chat_requests", "embed_requests", "est_prompt_tokens", "est_completion_tokens")
        counts: dict[str, Any] = {name: self._counts[name] for name in names}
        counts["est_cached_tokens"] = self._gpu.cached_tokens
        return counts | {"idle_s": self._gpu.idle_s, "server_cpu_s": time.process_time()}

    def _complete(
        self, body: dict[str, Any], messages: list[dict[str, Any]], now: float
    ) -> tuple[float, list[dict[str, Any]], dict[str, int]]:
        """Return when the choices for one conversation are due, the choices, and their tokens."""
        text = self._stub.msgs_text({"messages": messages})
        digest = hashlib.sha256(text.encode()).hexdigest()
        labels = (body.get("structured_outputs") or {}).get("choice") or body.get("guided_choice")
        schema = None if labels else self._stub.find_schema(body, text)
        if schema is not None and "enum" in schema:
            labels = [str(label) for label in schema["enum"]]
        outputs = [self._output(labels, schema, text, digest, number) for number in range(int(body.get("n") or 1))]
        tokens = [(len(output) + 3) // 4 for output in outputs]
        usage = {"prompt_tokens": (len(text) + 3) // 4, "completion_tokens": sum(tokens)}
        self._counts["chat_requests"] += 1
        self._counts["est_prompt_tokens"] += usage["prompt_tokens"]
        self._counts["est_completion_tokens"] += usage["completion_tokens"]
        choices = []
        for index, output in enumerate(outputs):
            wants = labels and body.get("logprobs")
            logprobs = self._stub.choice_logprobs(labels, output, digest, False) if wants else None
            message = {"role": "assistant", "content": output, "refusal": None}
            choices.append({"index": index, "message": message, "finish_reason": "stop", "logprobs": logprobs})
        return self._gpu.serve(text, max(tokens), now), choices, usage | {"total_tokens": sum(usage.values())}

    def _output(self, labels: list[str] | None, schema: Any, text: str, digest: str, number: int) -> str:
        if labels:
            return labels[self._stub.h(digest, str(number)) % len(labels)]
        if schema is None:
            return "2"
        return str(self._stub.json.dumps(self._stub.Gen(schema, text, f"#{number}" if number else "").gen(schema)))


def _completion(body: dict[str, Any], choices: list[dict[str, Any]], usage: dict[str, int]) -> dict[str, Any]:
    head = {"id": "stub", "object": "chat.completion", "created": 1700000000, "model": body.get("model", "stub")}
    return {**head, "choices": choices, "usage": usage}


def _finish(work: Any) -> Any:
    """Return the result of a coroutine that waits for nothing."""
    try:
        work.send(None)
    except StopIteration as stop:
        return stop.value
    raise RuntimeError("the coroutine waits")


class Connection(asyncio.Protocol):
    """A connection of a client, which waits for each reply before it sends the next request.

    Args:
        judge: Gives the replies.
    """

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        self._loop = asyncio.get_running_loop()
        self._received = bytearray()
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Note the transport."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer a request as soon as it is complete."""
        self._received += data
        end = self._received.find(b"\r\n\r\n")
        if end < 0:
            return
        head = self._received[:end].decode("latin1")
        length = next((int(line[15:]) for line in head.split("\r\n") if line.lower().startswith("content-length:")), 0)
        if len(self._received) < end + 4 + length:
            return
        body = bytes(self._received[end + 4 : end + 4 + length])
        del self._received[: end + 4 + length]
        now = self._loop.time()
        due, status, content = self._judge.answer(head.split(" ", 2)[1], orjson.loads(body) if body else {}, now)
        sent = orjson.dumps(content)
        begin = b"HTTP/1.1 %d X\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % (status, len(sent))
        if due <= now:
            self._send(begin + sent)
        else:
            self._loop.call_at(due, self._send, begin + sent)

    def _send(self, reply: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(reply)


async def main() -> None:
    """Serve until the process ends."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--port", type=int, default=8123)
    parser.add_argument("--prefill-tps", type=float, default=20_000, help="uncached prompt tokens per second")
    parser.add_argument("--step-ms", type=float, default=25, help="milliseconds per output token")
    parser.add_argument("--max-num-seqs", type=int, default=256, help="sequences at once")
    parser.add_argument("--cache-tokens", type=int, default=400_000, help="tokens of the prefix cache")
    parser.add_argument("--batches", action="store_true", help="know the endpoint of many conversations")
    options = parser.parse_args()
    stub = load_stub()
    stub.A = argparse.Namespace(embed_latency_ms=0, dim=384)
    stub.asyncio = _Impatient
    stub.reset()
    gpu = Gpu(options.prefill_tps, options.step_ms / 1000, options.max_num_seqs, options.cache_tokens)
    judge = Judge(stub, gpu, batches=options.batches)
    server = await asyncio.get_running_loop().create_server(
        lambda: Connection(judge), "127.0.0.1", options.port, backlog=1024
    )
    await server.serve_forever()


class _Impatient:
    """The part of asyncio with which the stub would wait."""

    @staticmethod
    async def sleep(_seconds: float) -> None:
        """Return at once: the reply is sent later."""


if __name__ == "__main__":
    asyncio.run(main())
