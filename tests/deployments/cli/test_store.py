"""The verbs `prune` and `store`: what is stored, whether it is damaged, and how it is removed."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tasks.cache.answer_cache import AnswerCache
from tasks.cache.cache_tables import ANSWERS
from tasks.rows.tables_in_use import mark_in_use
from tests.deployments.cli.conftest import Outcome
from tests.tasks.cache.helpers import key_of
from tests.tasks.rows.test_prune_tables import age, write_segment

Assay = Callable[..., Outcome]


@pytest.fixture
def stores(tmp_path: Path) -> tuple[str, ...]:
    """Options that name the stores of one test."""
    return ("--tables", str(tmp_path), "--cache", str(tmp_path / "answers.db"))


def test_prune_removes_nothing_without_yes(assay: Assay, tmp_path: Path, stores: tuple[str, ...]) -> None:
    files = write_segment(tmp_path, "a")
    age(*files, days=10)
    assert "would remove 0 segments of rows" in assay("prune", *stores).out
    told = json.loads(assay("prune", *stores, "--older-than", "8d", "--json").out)
    assert (told["segments"], told["tables"], told["dry_run"]) == (1, 0, True)
    assert "add --yes to remove" in assay("prune", *stores, "--older-than", "1w").out
    assert all(path.exists() for path in files)
    assert "removed 1 segments of rows, 0 tables" in assay("prune", *stores, "--older-than", "1w", "--yes").out
    assert not any(path.exists() for path in files)


def test_prune_merges_small_segments(assay: Assay, tmp_path: Path, stores: tuple[str, ...]) -> None:
    for name in "abc":
        write_segment(tmp_path, name)
    assert "would merge 3 small segments of rows into larger ones" in assay("prune", *stores).out
    assert "merged 3 small segments of rows into larger ones" in assay("prune", *stores, "--yes").out
    assert "merge" not in assay("prune", *stores).out


def test_prune_reports_runs_in_progress(assay: Assay, tmp_path: Path, stores: tuple[str, ...]) -> None:
    with mark_in_use(str(tmp_path), "run"):
        assert "runs in progress: 1; files that they may need are kept" in assay("prune", *stores).out
    assert "under way" not in assay("prune", *stores).out


@pytest.mark.parametrize(("option", "value"), [("--older-than", "soon"), ("--max-size", "big")])
def test_invalid_age_or_size_is_exit_code_2(assay: Assay, option: str, value: str) -> None:
    outcome = assay("prune", option, value)
    assert (outcome.code, value in outcome.err) == (2, True)


def test_store_lists_tables_and_answers(assay: Assay, tmp_path: Path, stores: tuple[str, ...]) -> None:
    write_segment(tmp_path, "a")
    shown = json.loads(assay("store", *stores, "--json").out)
    assert {folder["folder"]: folder["count"] for folder in shown["tables"]["folders"]} == {"rows/questions": 1}
    assert shown["answers"]["steps"] == []
    assert "answers.db" in shown["answers"]["path"]
    assert "rows/questions" in assay("store", *stores).out


def test_a_check_finds_damage(assay: Assay, tmp_path: Path, stores: tuple[str, ...]) -> None:
    _, data = write_segment(tmp_path, "a")
    assert assay("store", *stores, "--check").code == 0
    data.write_bytes(b"damaged")
    outcome = assay("store", *stores, "--check")
    assert (outcome.code, str(data) in outcome.out) == (6, True)


def write_cache(path: Path) -> AnswerCache:
    cache = AnswerCache(f"sqlite:///{path}")
    cache.add("test", {key_of(str(number)): b"x" * 200 for number in range(2000)})
    cache.database.read(lambda connection: connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").all())
    return cache


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "no database": lambda content: b"not a database" + content[14:],
    "pages": lambda content: content[: 4096 * 2] + b"\xff" * 4096 * 30 + content[4096 * 32 :],
    "schema": lambda content: content[:100] + b"\xff" * 3996 + content[4096:],
    "cut": lambda content: content[: len(content) // 2],
    "random text": lambda content: b"What is this?" * (len(content) // 13),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_a_damaged_cache_is_found(
    assay: Assay, tmp_path: Path, stores: tuple[str, ...], damage: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "answers.db"
    write_cache(path)
    path.write_bytes(damage(path.read_bytes()))
    checked = assay("store", *stores, "--check")
    assert (checked.code, checked.err) == (6, "")
    assert "damaged: " in checked.out
    told = assay("store", *stores, "--check", "--json")
    assert told.code == 6
    assert json.loads(told.out)["answers"]["check"]["problems"]
    for verb in (("store", *stores), ("prune", *stores, "--older-than", "1d", "--yes")):
        outcome = assay(*verb)
        assert outcome.code in (0, 2), outcome  # damage that a query does not meet is no error
        assert outcome.code == 0 or "answers.db cannot be" in outcome.err


def test_values_of_other_types_are_damaged_answers(assay: Assay, tmp_path: Path, stores: tuple[str, ...]) -> None:
    write_cache(tmp_path / "answers.db")
    with closing(sqlite3.connect(tmp_path / "answers.db")) as file:
        chosen = f"SELECT key FROM {ANSWERS.name} LIMIT 200"
        file.execute(f"UPDATE {ANSWERS.name} SET value = 'text', created = 'yesterday' WHERE key IN ({chosen})")
        file.commit()
    told = assay("store", *stores, "--check", "--json")
    assert told.code == 6
    assert json.loads(told.out)["answers"]["check"]["damaged"] == 200
    assert assay("store", *stores).code == 2


def test_a_cache_that_cannot_be_opened_is_not_reported_as_damaged(assay: Assay, tmp_path: Path) -> None:
    refused = assay("store", "--tables", str(tmp_path), "--cache", str(tmp_path), "--check")
    assert (refused.code, refused.out) == (2, "")
    assert "cannot be used" in refused.err
