"""A server that takes the options of vLLM or llama.cpp and answers `/health`: what is launched in their place.

The variable FAKE_VLLM says how it behaves, in words separated by commas:
    exit       writes an error as vLLM does, and ends
    silent     writes nothing and ends
    never      serves, but is never healthy
    damaged    writes an error as llama.cpp does, and ends
    stubborn   does not end when asked to
    child      has a process of its own, like vLLM's engine
    mute       answers no question
    orphaning  ends when it is asked for /end, and leaves that process behind
"""

import argparse
import json
import os
import signal
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BEHAVIOUR = set(os.environ.get("FAKE_VLLM", "").split(","))


class Handler(BaseHTTPRequestHandler):
    """Answers `/health`, and with the process's variables and arguments on `/self`."""

    def do_GET(self) -> None:
        self.send_response(503 if "never" in BEHAVIOUR else 200)
        self.end_headers()
        if self.path == "/self":
            shown = [*sys.argv[1:], *(f"{name}={value}" for name, value in os.environ.items())]
            self.wfile.write("\n".join(shown).encode())
        if self.path == "/end" and "orphaning" in BEHAVIOUR:
            os.kill(os.getpid(), signal.SIGKILL)

    def do_POST(self) -> None:
        """Answer a question with as many tokens as it allows."""
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(500 if "mute" in BEHAVIOUR else 200)
        self.end_headers()
        usage = {"prompt_tokens": 300, "completion_tokens": asked["max_tokens"]}
        self.wfile.write(json.dumps({"usage": usage}).encode())

    def log_message(self, *_: object) -> None:
        """Nothing."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model_tag", nargs="?")
    parser.add_argument("--model")
    parser.add_argument("--served-model-name", "--alias")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    arguments, _ = parser.parse_known_args()
    if "silent" in BEHAVIOUR:
        sys.exit(3)
    print(f"INFO loading {arguments.model}", flush=True)
    if "damaged" in BEHAVIOUR:
        print("0.00.011 E srv  init: exiting due to model loading error", flush=True)
        sys.exit(1)
    if "exit" in BEHAVIOUR:
        print("(EngineCore pid=7) ERROR ValueError: No available memory for the cache blocks.")
        print("\n".join(f"INFO line {number}" for number in range(100)))
        print(f"RuntimeError: Engine core initialization failed. Token: {os.environ.get('HF_TOKEN')}", flush=True)
        sys.exit(1)
    if "stubborn" in BEHAVIOUR:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if BEHAVIOUR & {"child", "orphaning"}:
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    print("INFO ready", flush=True)
    ThreadingHTTPServer((arguments.host, arguments.port), Handler).serve_forever()


if __name__ == "__main__":
    signal.alarm(120)  # a test that was killed leaves nothing behind
    main()
