"""`assay example` writes the packaged examples, and `assay run --example` evaluates them."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.deployments.cli.conftest import Outcome
from tests.structure.house import ROOT

Assay = Callable[..., Outcome]


def test_the_examples_are_written_once_and_changed_files_are_kept(
    assay: Assay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "gate.toml").write_text("# my own", encoding="utf-8")
    assert "evaluate with: assay run examples/handbook.jsonl" in assay("example").out
    for name in ("handbook.jsonl", "handbook/vacation.md"):
        assert (tmp_path / "examples" / name).read_bytes() == (ROOT / "examples" / name).read_bytes()
    assert (tmp_path / "examples" / "gate.toml").read_text(encoding="utf-8") == "# my own"


def test_the_example_is_no_second_source(assay: Assay) -> None:
    outcome = assay("run", "own.jsonl", "--example")
    assert outcome.code != 0
    assert "leave out one of them" in outcome.err
