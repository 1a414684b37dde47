"""Every command that writes a file leaves the earlier file or none when the disk is full, and says so."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.deployments.cli.conftest import Outcome
from tests.full_disk import full_after, small_disk
from tests.tasks.compared import write_run
from tests.tasks.reports.exports.test_qrels_table import GRADES, SAMPLES
from tests.tasks.reports.exports.test_qrels_table import write_run as write_judged_run

Assay = Callable[..., Outcome]

ROOM = 200
"""Bytes, fewer than any of the files has."""
ROOM_OF_PAGES = 33_000
"""Bytes, fewer than a page of the history has, and enough for SQLite's shared memory."""
COMMANDS = (
    "compare a b --html out",
    "compare a b --markdown out",
    "compare a b --gate gate.toml --junit out",
    "export a --out out.csv",
    "export a --out out.jsonl",
    "export a --out out.parquet",
    "export a --out out.prom --format prometheus",
    "export judged --shape qrels --out out.txt",
    "report a --out out",
    "history nightly --history history.db --page out",
    "init rows.jsonl --force --out out",
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, assay: Assay) -> Path:
    """Two runs, one with judgments, a gate and a history, in the folder where the commands start."""
    monkeypatch.chdir(tmp_path)
    whole: dict[str, Any] = {"bad_row_count": 0, "seconds": 1.0, "failures": [], "stages": {}, "name": "nightly"}
    for name, level in (("a", 0.8), ("b", 0.2)):
        write_run(tmp_path / name, level, run_id=name, **whole)
    write_judged_run(tmp_path / "judged", SAMPLES * 20, GRADES)
    (tmp_path / "gate.toml").write_text("regression = { max_drop = 0.7 }\n", encoding="utf-8")
    (tmp_path / "rows.jsonl").write_text('{"user_input": "Why?", "response": "So."}\n', encoding="utf-8")
    assert assay("history", "--rebuild", "a", "--history", "history.db").code == 0
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
def test_a_full_disk_leaves_the_earlier_file(assay: Assay, folder: Path, command: str) -> None:
    target = next(folder / word for word in reversed(command.split()) if word.startswith("out"))
    assay(*command.split())
    room = ROOM_OF_PAGES if command.startswith("history") else ROOM
    assert target.stat().st_size > room
    for earlier in ("the earlier file\n", None):
        target.unlink()
        if earlier is not None:
            target.write_text(earlier, encoding="utf-8")
        with full_after(room):
            done = assay(*command.split())
        assert done.code not in (0, 10, 11, 70)
        assert f"{target.name} cannot be written: " in " ".join(done.err.split())
        assert "File too large" in done.err
        assert "Traceback" not in done.err
        assert (target.read_text(encoding="utf-8") if target.exists() else None) == earlier
        assert list(folder.glob(".*.tmp")) == []
        target.touch()


def test_a_full_disk_leaves_no_part_of_the_prompts(assay: Assay, folder: Path) -> None:
    with full_after(ROOM):
        done = assay("prompts", "export", "prompts")
    assert done.code == 2
    assert "cannot be written: File too large" in " ".join(done.err.split())
    assert list((folder / "prompts").iterdir()) == []
    assert assay("prompts", "export", "prompts").code == 0


def test_the_message_about_a_disk_that_is_really_full(assay: Assay, folder: Path) -> None:
    with small_disk(folder / "disk", 16 * 1024) as disk:
        (disk / "page.html").write_text("the earlier file", encoding="utf-8")
        done = assay("compare", "a", "b", "--html", str(disk / "page.html"))
        assert done.code == 5
        assert "page.html cannot be written: No space left on device" in " ".join(done.err.split())
        assert [path.name for path in disk.iterdir()] == ["page.html"]
        assert (disk / "page.html").read_text(encoding="utf-8") == "the earlier file"


@pytest.mark.parametrize("command", ["compare a b --markdown", "export a --format csv --out", "init --force --out"])
def test_a_pipe_is_written_and_stays_a_pipe(assay: Assay, folder: Path, command: str) -> None:
    os.mkfifo(folder / "pipe")
    read = os.open(folder / "pipe", os.O_RDWR)
    try:
        done = assay(*command.split(), "pipe")
        assert done.code == 0, done.err
        assert len(os.read(read, 65_536)) > ROOM
    finally:
        os.close(read)
    assert (folder / "pipe").is_fifo()
