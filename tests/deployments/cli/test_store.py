"""The verbs `prune` and `store`: what is stored, whether it is damaged, and how it is removed."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tasks.tables.tables_in_use import mark_in_use
from tests.deployments.cli.conftest import Outcome
from tests.tasks.tables.test_prune_tables import write_with_record

Assay = Callable[..., Outcome]


@pytest.fixture
def stores(tmp_path: Path) -> tuple[str, ...]:
    """Options that name the stores of one test."""
    return ("--tables", str(tmp_path), "--cache", str(tmp_path / "answers.db"))


def test_prune_removes_nothing_without_yes(assay: Assay, tmp_path: Path, stores: tuple[str, ...]) -> None:
    ref, record = write_with_record(tmp_path, "one", "Why?")
    for path in (Path(ref.path), record):
        os.utime(path, (time.time() - 10 * 86_400,) * 2)
    assert "would remove 0 records" in assay("prune", *stores).out
    told = json.loads(assay("prune", *stores, "--older-than", "8d", "--json").out)
    assert (told["records"], told["tables"], told["dry_run"]) == (1, 1, True)
    assert "add --yes to remove" in assay("prune", *stores, "--older-than", "1w").out
    assert record.exists()
    assert "removed 1 records, 1 tables" in assay("prune", *stores, "--older-than", "1w", "--yes").out
    assert not record.exists()


def test_prune_reports_runs_in_progress(assay: Assay, tmp_path: Path, stores: tuple[str, ...]) -> None:
    with mark_in_use(str(tmp_path), "run"):
        assert "runs in progress: 1; files that they may need are kept" in assay("prune", *stores).out
    assert "under way" not in assay("prune", *stores).out


@pytest.mark.parametrize(("option", "value"), [("--older-than", "soon"), ("--max-size", "big")])
def test_invalid_age_or_size_is_exit_code_2(assay: Assay, option: str, value: str) -> None:
    outcome = assay("prune", option, value)
    assert (outcome.code, value in outcome.err) == (2, True)


def test_store_lists_tables_and_answers(assay: Assay, tmp_path: Path, stores: tuple[str, ...]) -> None:
    write_with_record(tmp_path, "one", "Why?")
    shown = json.loads(assay("store", *stores, "--json").out)
    assert {folder["folder"]: folder["count"] for folder in shown["tables"]["folders"]} == {"results": 1, "samples": 1}
    assert shown["answers"]["steps"] == []
    assert "answers.db" in shown["answers"]["path"]
    assert "samples" in assay("store", *stores).out


def test_a_check_finds_damage(assay: Assay, tmp_path: Path, stores: tuple[str, ...]) -> None:
    ref, _ = write_with_record(tmp_path, "one", "Why?")
    assert assay("store", *stores, "--check").code == 0
    Path(ref.path).write_bytes(b"damaged")
    outcome = assay("store", *stores, "--check")
    assert (outcome.code, ref.path in outcome.out) == (6, True)
