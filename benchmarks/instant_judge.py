"""A judge server that answers at once, for measurements of the client.

    python benchmarks/instant_judge.py PORT [--no-batch] [--delay SECONDS]

It replies as vLLM does, with log-probabilities of twenty tokens for a label, to single requests and to
`/v1/chat/completions/batch`, and with vectors to `/v1/embeddings`. A reply takes tens of microseconds: whatever time
remains is the client's.
"""

import argparse
import asyncio
import base64
import hashlib
import math
import struct
import time
from collections import Counter
from typing import Any

import orjson

WORDS = ("Yes", "YES", "no", "No", "The", "It", "Based", "**", "Answer", "true", "NO", "y", "n", "I", "-", "According")
WINDOW = 32768
DIMENSIONS = 384
LIST = 4
"""Items of a list whose length the schema leaves open: as many claims as the stub of the peer benchmark makes."""
COUNTS: Counter[str] = Counter()


def reply_to(body: dict[str, Any], messages: list[dict[str, str]], index: int) -> dict[str, Any]:
    """Return the choice for one conversation."""
    labels = (body.get("structured_outputs") or {}).get("choice")
    if labels:
        return _choice(index, labels, messages, bool(body.get("logprobs")))
    schema = (body.get("response_format") or {}).get("json_schema", {}).get("schema")
    text = "hello" if schema is None else orjson.dumps(_value(schema, _number(messages))).decode()
    return {
        "index": index,
        "message": {"role": "assistant", "content": text},
        "logprobs": None,
        "finish_reason": "stop",
    }


def _choice(index: int, labels: list[str], messages: list[dict[str, str]], wants: bool) -> dict[str, Any]:
    number = _number(messages)
    label = labels[number[0] % len(labels)]
    message = {"role": "assistant", "content": label, "refusal": None, "reasoning": None}
    logprobs = None
    if wants:
        likely = 0.5 + number[1] / 600
        tokens = dict.fromkeys((label, *labels, *WORDS))
        others = (1 - likely) / (2 * len(tokens))
        top = [
            {"token": token, "logprob": math.log(likely if token == label else others), "bytes": list(token.encode())}
            for token in list(tokens)[:20]
        ]
        logprobs = {"content": [{**top[0], "top_logprobs": top}]}
    return {
        "index": index,
        "message": message,
        "logprobs": logprobs,
        "finish_reason": "stop",
        "token_ids": [1] if 0 else None,
    }


def _number(messages: list[dict[str, str]]) -> bytes:
    """Return four bytes that follow from the prompt."""
    return hashlib.blake2b(messages[-1]["content"].encode(), digest_size=4).digest()


def _value(schema: dict[str, Any], number: bytes, position: int = 0) -> Any:
    """Return a value of a schema; the texts differ from prompt to prompt, and so do the questions that follow."""
    if "enum" in schema:
        return schema["enum"][0]
    if schema["type"] == "object":
        return {name: _value(member, number, position) for name, member in schema["properties"].items()}
    if schema["type"] == "array":
        length = schema.get("minItems") or LIST
        return [_value(schema["items"], number, each) for each in range(length)]
    text = f"The ferry of town {number.hex()} sails at {position + 1} o'clock."
    return {"string": text, "integer": 1, "boolean": False}[schema["type"]]


class Stub:
    """The answers of the server.

    Args:
        batches: True if it knows the endpoint of many conversations.
    """

    def __init__(self, batches: bool) -> None:
        self._batches = batches

    def answer(self, path: str, raw: bytes) -> tuple[int, Any]:
        """Return status and content."""
        body = orjson.loads(raw) if raw else {}
        COUNTS[path] += 1
        if path == "/v1/chat/completions":
            COUNTS["conversations"] += 1
            return 200, self._completion(body, [body["messages"]])
        if path == "/v1/chat/completions/batch" and self._batches:
            COUNTS["conversations"] += len(body["messages"])
            return 200, self._completion(body, body["messages"])
        if path == "/v1/embeddings":
            return 200, _embeddings(body)
        COUNTS["chat_requests"] = COUNTS["/v1/chat/completions"] + COUNTS["/v1/chat/completions/batch"]
        counts = {**COUNTS, "cpu_s": time.process_time()}
        card = {"id": "instant", "object": "model", "owned_by": "vllm", "max_model_len": WINDOW}
        pages = {"/v1/models": {"data": [card]}, "/version": {"version": "0"}, "/stats": counts}
        return (200, pages[path]) if path in pages else (404, {"detail": "Not Found"})

    def _completion(self, body: dict[str, Any], conversations: list[list[dict[str, str]]]) -> dict[str, Any]:
        choices = [
            reply_to(body, messages, index)
            for index, messages in enumerate(m for m in conversations for _ in range(body.get("n") or 1))
        ]
        prompt = sum(len(message["content"]) for messages in conversations for message in messages) // 4
        written = sum((len(choice["message"]["content"]) + 3) // 4 for choice in choices)
        usage = {"prompt_tokens": prompt, "completion_tokens": written, "total_tokens": prompt + written}
        return {"id": "x", "object": "chat.completion", "model": "instant", "choices": choices, "usage": usage}


def _embeddings(body: dict[str, Any]) -> dict[str, Any]:
    texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
    data = []
    for index, text in enumerate(texts):
        seed = hashlib.shake_128(text.encode()).digest(DIMENSIONS)
        vector = [byte / 128 - 1 for byte in seed]
        value: Any = vector
        if body.get("encoding_format") == "base64":
            value = base64.b64encode(struct.pack(f"<{DIMENSIONS}f", *vector)).decode()
        data.append({"object": "embedding", "index": index, "embedding": value})
    tokens = sum(len(text) for text in texts) // 4
    return {"object": "list", "data": data, "model": "instant", "usage": {"prompt_tokens": tokens}}


async def main() -> None:
    """Serve until the process ends."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("--no-batch", action="store_true", help="know single requests only")
    parser.add_argument("--delay", type=float, default=0.0, help="seconds before each reply of a judge")
    options = parser.parse_args()
    stub = Stub(not options.no_batch)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin1").split("\r\n")
                fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
                raw = await reader.readexactly(int(fields.get("content-length", 0)))
                path = head[0].split(" ")[1]
                if "chat" in path:
                    await asyncio.sleep(options.delay)
                status, content = stub.answer(path, raw)
                sent = orjson.dumps(content)
                begin = f"HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {len(sent)}\r\n\r\n"
                writer.write(begin.encode() + sent)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", options.port, limit=1 << 24, backlog=1024)
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
