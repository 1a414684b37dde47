"""The environment of vLLM: what is installed, from which pins, and what is refused; nothing is downloaded."""

import hashlib
import os
import re
import zipfile
from importlib.metadata import requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from metric_core.errors import ConfigError, JudgeError
from tasks.options.launch_backends import LAUNCH_BACKENDS
from tasks.processes.install import Pins, find_gpus, install_backend, installed_version
from tests.structure.house import ROOT

VLLM, LLAMA = LAUNCH_BACKENDS["vllm"], LAUNCH_BACKENDS["llama.cpp"]
FOLDER = ROOT / "deployments" / "container"
PINS = FOLDER / "vllm-pins.txt"
GPU = "NVIDIA H100 80GB HBM3, 81559 MiB, 580.82.07"


def write_nvidia_smi(folder: Path, cuda: str, gpu: str = GPU) -> None:
    """Write a program that prints what nvidia-smi does: a table, or the GPUs that are queried."""
    program = folder / "nvidia-smi"
    table = f"| NVIDIA-SMI 580.82.07   Driver Version: 580.82.07   CUDA Version: {cuda} |"
    program.write_text(f'#!/bin/sh\nif [ $# = 0 ]; then echo "{table}"; else echo "{gpu}"; fi\n')
    program.chmod(0o755)


def write_pins(folder: Path, version: str = "0.32.0", digest: str | None = None) -> Pins:
    """Write a package named vllm, and requirements that pin it."""
    wheel = folder / f"vllm-{version}-py3-none-any.whl"
    info = f"vllm-{version}.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("vllm.py", "")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    file = folder / "pins.txt"
    digest = digest or hashlib.sha256(wheel.read_bytes()).hexdigest()
    file.write_text(f"# made by hand\nvllm=={version} \\\n    --hash=sha256:{digest}\n")
    return Pins.read(file)


@pytest.fixture(autouse=True)
def _no_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))


@pytest.mark.served
def test_a_pinned_vllm_is_installed_once_and_only_with_its_hash(tmp_path: Path) -> None:
    folder, said = tmp_path / "environment", list[str]()
    with pytest.raises(JudgeError, match="could not be installed"):
        install_backend(VLLM, folder, write_pins(tmp_path, digest="0" * 64), said.append)
    assert installed_version(folder / "bin" / "python", "vllm") is None

    python = install_backend(VLLM, folder, write_pins(tmp_path), said.append)
    assert python == folder / "bin" / "python"
    assert installed_version(python, "vllm") == "0.32.0"
    assert said == [f"making the environment {folder}", "installing the packages", "installing the packages"]

    (tmp_path / "vllm-0.32.0-py3-none-any.whl").unlink()
    install_backend(VLLM, folder, Pins.read(tmp_path / "pins.txt"), said.append)
    assert said[-1] == "vLLM (vllm 0.32.0) is installed already"

    install_backend(VLLM, folder, write_pins(tmp_path, "0.33.0"), said.append)
    assert installed_version(python, "vllm") == "0.33.0"


def test_a_folder_with_something_else_is_left_alone(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="not a virtual environment"):
        install_backend(VLLM, tmp_path, write_pins(tmp_path), lambda _: None)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pins.txt", "vllm-0.32.0-py3-none-any.whl"]


def test_gpus_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    write_nvidia_smi(tmp_path, cuda="13.0")
    assert find_gpus(13) == [GPU]


def test_a_driver_that_is_too_old_for_the_pins_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    write_nvidia_smi(tmp_path, cuda="12.8")
    assert find_gpus(12) == [GPU]
    with pytest.raises(ConfigError, match="supports CUDA 12, and vLLM is built for CUDA 13"):
        find_gpus(13)


def test_a_machine_without_a_gpu_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ConfigError, match="no NVIDIA GPU was found"):
        find_gpus(None)


def test_the_pins_are_those_of_the_requirement_and_of_the_image() -> None:
    pins = Pins.read(PINS)
    (requirement,) = re.findall(r"^vllm==(\S+)$", (FOLDER / "vllm-requirements.txt").read_text(), re.MULTILINE)
    assert pins.versions["vllm"] == requirement, "run `just lock`"
    assert f"vllm/vllm-openai:v{requirement}" in (FOLDER / "vllm.Containerfile").read_text()
    assert pins.cuda == 13
    blocks = re.split(r"^(?=\w)", PINS.read_text(), flags=re.MULTILINE)[1:]
    assert len(blocks) >= len(pins.versions) > 100
    assert [block for block in blocks if not re.search(r"--hash=sha256:[0-9a-f]{64}", block)] == []


def test_vllm_and_prefect_agree_on_no_fastapi() -> None:
    # Otherwise vLLM could be a dependency.
    (needed,) = [Requirement(text) for text in requires("prefect") or () if text.startswith("fastapi")]
    pinned = Pins.read(PINS).versions["fastapi"]
    assert pinned not in needed.specifier
    assert pinned in SpecifierSet("<0.137")
