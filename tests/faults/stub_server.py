"""A judge server in a separate process: answers depend on the prompt alone, and faults are options.

    python -m tests.faults.stub_server --port 8123 --log requests.jsonl --fail-every 10 --fail-status 500

Each line of the log is a chat request, with its prompt and its fault; requests of the probe are left out.
"""

import argparse
import hashlib
import json
import os
import signal
import time
from pathlib import Path
from typing import Any

from tests.tasks.models.judges.openai.fake_server import FakeServer, Fault, step
from tests.waiting import wait_until

MOST_SECONDS = 1800
"""Time limit: a server whose test was killed ends by itself."""

BEFORE_HOLD = 3
"""Number of requests that are answered before those that wait."""


class Answers:
    """A function that chooses the answer or the fault for each request.

    Args:
        options: Parsed command line.
    """

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._count = 0

    def __call__(self, body: dict[str, Any]) -> dict[str, Any] | Fault:
        self._count += 1
        if self._options.hold is not None and self._count > BEFORE_HOLD:
            wait_until(lambda: not self._options.hold.exists(), "the release of the judge server")
        prompt = str(body["messages"][-1]["content"])
        options = self._options
        if self._is(options.die_at):
            os.kill(os.getpid(), signal.SIGKILL)
        if self._is(options.fail_every):
            self._log(prompt, str(options.fail_status))
            headers = {"Retry-After": "0"} if options.fail_status == 429 else {}
            return Fault(options.fail_status, headers=headers)
        is_bad = not _labels(body) and self._is(options.bad_json_every)
        self._log(prompt, "bad JSON" if is_bad else None)
        said = answer_to(body)
        return {"content": said["content"][: len(said["content"]) // 2]} if is_bad else said

    def _is(self, every: int) -> bool:
        return bool(every) and self._count % every == 0

    def _log(self, prompt: str, fault: str | None) -> None:
        with self._options.log.open("a", encoding="utf-8") as log:
            log.write(json.dumps({"prompt": prompt, "fault": fault}) + "\n")


def answer_to(body: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to a chat request, which depends on its prompt alone."""
    prompt = str(body["messages"][-1]["content"])
    if labels := _labels(body):
        return _chosen(labels, prompt)
    return {"content": json.dumps(value_of(body["response_format"]["json_schema"]["schema"], prompt))}


def _labels(body: dict[str, Any]) -> list[str]:
    return body.get("structured_outputs", {}).get("choice") or []


def _chosen(labels: list[str], prompt: str) -> dict[str, Any]:
    """Return a choice of a label, with probabilities of all labels."""
    weights = {label: 1 + _number(prompt, label) % 50 for label in labels}
    top = {label: weight / sum(weights.values()) for label, weight in weights.items()}
    label = max(top, key=lambda label: top[label])
    return {"content": label, "steps": [step(label, top)]}


def value_of(schema: dict[str, Any], key: str) -> Any:
    """Return a value that fits the schema and depends on the prompt."""
    if "enum" in schema:
        return schema["enum"][_number(key) % len(schema["enum"])]
    if schema["type"] == "object":
        return {name: value_of(member, f"{key}.{name}") for name, member in schema["properties"].items()}
    if schema["type"] == "array":
        fewest = schema.get("minItems", 1)
        length = fewest + _number(key) % (min(schema.get("maxItems", fewest + 2), fewest + 2) - fewest + 1)
        return [value_of(schema["items"], f"{key}[{i}]") for i in range(length)]
    if schema["type"] == "integer":
        lowest = schema.get("minimum", 0)
        return lowest + _number(key) % (schema.get("maximum", lowest + 3) - lowest + 1)
    return _number(key) % 5 == 0 if schema["type"] == "boolean" else f"It rains on day {_number(key) % 1000}."


def _number(*parts: str) -> int:
    return int.from_bytes(hashlib.sha256("\x1f".join(parts).encode()).digest()[:6], "big")


def main() -> None:
    """Serve until the process is killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--fail-every", type=int, default=0)
    parser.add_argument("--fail-status", type=int, default=500)
    parser.add_argument("--bad-json-every", type=int, default=0)
    parser.add_argument("--die-at", type=int, default=0, help="kill this process at that request")
    parser.add_argument("--hold", type=Path, help="answer the fourth request and later ones once this file is gone")
    parser.add_argument("--max-seconds", type=int, default=MOST_SECONDS, help="end by itself after so long")
    options = parser.parse_args()
    signal.alarm(options.max_seconds)
    with FakeServer(say=Answers(options)) as server:
        server.stop()
        server.port = options.port
        server.start()
        time.sleep(options.max_seconds)


if __name__ == "__main__":
    main()
