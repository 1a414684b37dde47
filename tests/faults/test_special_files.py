"""A file that a user names is a regular one: a FIFO or a device is refused instead of read without end."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from flows.config.config_files import read_options
from metric_core.errors import AssayError
from metric_core.parsing.regular_files import check_folder, regular
from metric_core.prompts.prompt_set import load_prompts
from tasks.calibration import calibration_files
from tasks.calibration.label_store import read_exported
from tasks.index_questions.question_file import read_questions
from tasks.models.judges.scripted import ScriptedJudge
from tasks.options.load_profile import load_profile
from tasks.runs.outcome_file import read_outcome
from tasks.runs.run_folder import RunFolder
from tasks.sources import SourceOptions, read_samples
from tasks.sources.qrels_file import QrelsFile

READERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "source": ("log.jsonl", lambda path: read_samples(path, SourceOptions(), {})),
    "traces": ("spans.jsonl", lambda path: list(read_samples(f"traces:{path}", SourceOptions(), {}))),
    "qrels": ("qrels.txt", lambda path: QrelsFile(str(path))),
    "table of qrels": ("qrels.csv", lambda path: QrelsFile(str(path))),
    "configuration": ("assay.toml", lambda path: read_options(path, "the configuration file", "TOML")),
    "prompts": ("system.txt", lambda path: load_prompts(path.parent)),
    "calibration": ("calibration.json", calibration_files.load_calibration),
    "script of a judge": ("script.json", ScriptedJudge.from_file),
    "profile": ("profile.toml", lambda path: load_profile(str(path))),
    "questions": ("questions.jsonl", read_questions),
    "labels of a page": ("labels.jsonl", lambda path: read_exported(path, "faithfulness")),
    "outcome": ("outcome.json", lambda path: read_outcome(path.parent)),
    "manifest": ("run.json", lambda path: RunFolder(path.parent).read_finished_record()),
    "table of a run": ("scores.parquet", lambda path: RunFolder(path.parent).read_finished_record()),
}


@pytest.mark.parametrize("kind", READERS)
@pytest.mark.parametrize("linked", [False, True])
def test_a_fifo_is_refused_wherever_a_file_is_named(kind: str, linked: bool, tmp_path: Path) -> None:
    name, read = READERS[kind]
    if linked:
        os.mkfifo(tmp_path / "pipe")
        (tmp_path / name).symlink_to("pipe")
    else:
        os.mkfifo(tmp_path / name)
    with pytest.raises(AssayError, match=r"it is a FIFO, wanted a regular file|calibration\.json cannot be used"):
        read(tmp_path / name)


def test_a_device_is_no_file_of_questions() -> None:
    with pytest.raises(AssayError, match="it is a device, wanted a regular file"):
        read_questions(Path("/dev/full"))


def test_devices_are_refused_and_links_to_files_are_not(tmp_path: Path) -> None:
    (tmp_path / "zero").symlink_to("/dev/zero")
    with pytest.raises(OSError, match="it is a device, wanted a regular file"):
        check_folder(tmp_path)
    (tmp_path / "zero").unlink()
    (tmp_path / "a").write_text("a")
    (tmp_path / "b").symlink_to("a")
    (tmp_path / "c").symlink_to("nowhere")
    check_folder(tmp_path)
    assert regular(tmp_path / "b") == tmp_path / "b"
