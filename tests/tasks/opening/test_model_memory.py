"""The model behind a server keeps its token as long as the cache of answers or the table store is there."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tasks.opening.model_memory import ServedModels
from tests.tasks.models.judges.openai.test_served_model import GRADED, MODEL

NOISY = replace(MODEL, replies=tuple((a + 0.02, b - 0.02) for a, b in GRADED), learnt={"probes": "p"})
OTHER = replace(MODEL, replies=((0.1, 0.9), *GRADED[1:]))


def memory(folder: Path, cache: str = "answers.db", *, read_only: bool = False) -> ServedModels:
    return ServedModels(str(folder / cache), str(folder / "tables"), read_only)


def test_a_lost_cache_leaves_the_token_of_the_rows(tmp_path: Path) -> None:
    token = memory(tmp_path).recognize(MODEL).token
    assert NOISY.token != token
    found = memory(tmp_path, "new.db").recognize(NOISY)
    assert (found.token, found.warning) == (token, None)
    shutil.rmtree(tmp_path / "tables")
    assert memory(tmp_path, "new.db").recognize(MODEL).token == token
    shutil.rmtree(tmp_path / "tables")
    assert memory(tmp_path, "third.db").recognize(NOISY).token == NOISY.token


def test_another_model_at_the_address_gets_another_token_without_a_cache(tmp_path: Path) -> None:
    token = memory(tmp_path).recognize(MODEL).token
    other = memory(tmp_path, "new.db").recognize(OTHER)
    assert other.token != token
    assert "its replies to the probe questions are others" in (other.warning or "")
    assert len({memory(tmp_path, "third.db").recognize(model).token for model in (MODEL, OTHER)}) == 2


def test_the_token_of_cached_answers_comes_before_that_of_rows(tmp_path: Path) -> None:
    for_answers = ServedModels(str(tmp_path / "answers.db")).recognize(NOISY).token
    for_rows = ServedModels(str(tmp_path / "other.db"), str(tmp_path / "tables")).recognize(MODEL).token
    assert for_answers != for_rows
    assert memory(tmp_path).recognize(MODEL).token == for_answers
    assert memory(tmp_path, "new.db").recognize(MODEL).token in {for_answers, for_rows}


def test_what_was_learnt_about_a_server_is_found_beside_the_rows(tmp_path: Path) -> None:
    memory(tmp_path).recognize(MODEL)
    memory(tmp_path).recognize(NOISY)
    (known,) = memory(tmp_path, "new.db").recall("judge", "default")
    assert (known.learnt, known.replies) == ({"probes": "p"}, GRADED)


@pytest.mark.parametrize("content", ["", "{}", '{"replies": 3}'])
def test_damaged_records_are_passed_over(tmp_path: Path, content: str) -> None:
    memory(tmp_path).recognize(MODEL)
    (path,) = (tmp_path / "tables").rglob("*.json")
    path.write_text(content, encoding="utf-8")
    assert memory(tmp_path, "new.db").recall("judge", "default") == []
    assert memory(tmp_path, "new.db").recognize(MODEL).token == MODEL.token


def test_a_dry_run_leaves_the_tables_as_they_are(tmp_path: Path) -> None:
    memory(tmp_path, read_only=True).recognize(MODEL)
    assert not (tmp_path / "tables").exists()


def test_a_store_that_cannot_be_written_is_no_error_here(tmp_path: Path) -> None:
    (tmp_path / "tables").write_text("a file", encoding="utf-8")
    assert memory(tmp_path).recognize(MODEL).token == MODEL.token
