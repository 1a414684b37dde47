"""The fake chat server in the place of vLLM: what a run launches to answer a group of questions."""

import argparse
import threading

from tests.tasks.models.judges.openai.fake_server import FakeServer


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--served-model-name", required=True)
    parser.add_argument("--port", type=int, required=True)
    arguments, _ = parser.parse_known_args()
    server = FakeServer(models=[arguments.served_model_name])
    server.port = arguments.port
    with server:
        threading.Event().wait()


if __name__ == "__main__":
    main()
