"""Small models with random weights behind real vLLM servers, started together."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from tasks.options.judge_server_options import ServerJudgeOptions
from tasks.options.launch_options import LaunchSettings
from tasks.options.profile import Profile
from tasks.processes.launch_command import build_command
from tasks.processes.system_processes import group_members
from tests.tasks.models.judges.openai.fake_server import free_port
from tests.tasks.models.judges.verifiers.random_models import save_random
from tests.vllm.build_judge_cpu import judge_cpu

START_SECONDS = 600
WINDOWS = {"chat": 8192, "decision": 2048, "classifier": 512, "score": 512, "lettucedetect": 1024}
"""Model -> tokens of a request."""

_ENVIRONMENT = {"HF_HUB_OFFLINE": "1", "VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}
_ENVIRONMENT |= {"VLLM_SLEEP_WHEN_IDLE": "1", "OMP_NUM_THREADS": "1", "VLLM_NO_USAGE_STATS": "1", "DO_NOT_TRACK": "1"}


@dataclass(frozen=True)
class SmallServer:
    """A server of a small model.

    Args:
        name: Name of the model.
        url: Its `/v1` URL.
        model: The model that it serves, as transformers holds it.
        tokenizer: The tokenizer of that model.
    """

    name: str
    url: str
    model: Any
    tokenizer: Any

    @property
    def options(self) -> ServerJudgeOptions:
        """The options that name it."""
        return ServerJudgeOptions(urls=(self.url,), timeout=300)


@contextmanager
def serve_small_models(folder: Path, profiles: Mapping[str, Profile]) -> Iterator[dict[str, SmallServer]]:
    """Serve a model with random weights for each profile, with the flags that the profile says; stop them at the end.

    Args:
        folder: Folder for the models and the log.
        profiles: Name of a small model -> profile of a verifier that it stands for.
    """
    transformers = pytest.importorskip("transformers")
    servers, arguments = {}, []
    for name, profile in profiles.items():
        path, port = folder / name, free_port()
        model = save_random(path, name)
        tokenizer = transformers.AutoTokenizer.from_pretrained(path)
        servers[name] = SmallServer(name, f"http://127.0.0.1:{port}/v1", model, tokenizer)
        arguments.append(_arguments(name, profile, path, port))
    log = folder / "vllm.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [judge_cpu().python, str(Path(__file__).with_name("serve_models.py")), json.dumps(arguments)],
            env={**os.environ, **_ENVIRONMENT},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        _wait(process, [server.url for server in servers.values()], log)
        yield servers
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(10)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    deadline = time.monotonic() + 30
    while any(group_members(process.pid)):
        assert time.monotonic() < deadline
        time.sleep(0.1)


def _arguments(name: str, profile: Profile, path: Path, port: int) -> list[str]:
    """Return the arguments with which a judge of this profile is launched, on a CPU."""
    launch: dict[str, Any] = {
        "python": str(judge_cpu().python),
        "model": str(path),
        "served_name": name,
        "dtype": "float32",
        "max_model_len": WINDOWS[name],
        "extra_args": [*profile.serving.extra_args, "--enforce-eager", "--max-num-seqs", "32"],
    }
    if profile.route == "chat":  # on a CPU, a seeded request with chunked prefill ends vLLM
        launch["extra_args"].append("--no-enable-chunked-prefill")
    words = build_command(LaunchSettings.model_validate(launch), port, {}, name).words
    return list(words[words.index("--model") :])


def _wait(process: "subprocess.Popen[bytes]", urls: list[str], log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    waiting = set(urls)
    while waiting:
        if process.poll() is not None or time.monotonic() > deadline:
            pytest.fail(f"vLLM did not start:\n{log.read_text(errors='replace')[-3000:]}")
        for url in sorted(waiting):
            with suppress(httpx.HTTPError):
                if httpx.get(f"{url.removesuffix('/v1')}/health", timeout=5).is_success:
                    waiting.discard(url)
        time.sleep(0.2)
