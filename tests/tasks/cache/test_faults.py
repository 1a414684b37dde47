"""A cache that cannot be used costs time, never a result, and logs one warning."""

import logging
import os
import pickle
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import update

from metric_core.errors import AssayError, ConfigError
from tasks.cache import answer_cache, circuit_breaker
from tasks.cache.answer_cache import AnswerCache, checksum_bytes
from tasks.cache.cache_tables import ANSWERS, FORMATS
from tasks.cache.cached_judge import CachedJudge
from tasks.models.judges.protocol import ChoiceAnswer
from tasks.runtime import database
from tasks.runtime.database_address import engine_url
from tests.postgres import lose_connections, new_database, start_postgres
from tests.tasks.cache.helpers import CountingJudge, key_of, numbered_questions
from tests.waiting import wait_until

COUNT = 1500


def judge_all(cache: AnswerCache, log: Path) -> list[bool]:
    """Judge the questions, and return whether each answer came from the cache."""
    answers = CachedJudge(CountingJudge(log), cache).choose(numbered_questions(0, COUNT))
    assert [answer.label for answer in answers] == ["yes"] * COUNT
    return [answer.stored for answer in answers]


def fill(path: Path, log: Path) -> None:
    """Write a SQLite cache with the answers to all questions, and close it."""
    assert judge_all(AnswerCache(engine_url(str(path))), log) == [False] * COUNT
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) * 2 // 3] ^= 0x10
    path.write_bytes(content)


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size * 2 // 5)


def scramble_the_head(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(os.urandom(4096))


def empty(path: Path) -> None:
    path.write_bytes(b"")


def make_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def bar_the_way(path: Path) -> None:
    path.unlink()
    path.parent.rmdir()
    path.parent.write_text("a file, not a folder")


@pytest.mark.parametrize("damage", [flip, truncate, scramble_the_head, empty, make_a_folder, bar_the_way])
def test_a_damaged_file_changes_no_result(
    tmp_path: Path, damage: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    path, log = tmp_path / "cache" / "answers.db", tmp_path / "asked"
    fill(path, log)
    damage(path)
    cache = AnswerCache(engine_url(str(path)))
    stored = judge_all(cache, log)
    assert len(CountingJudge(log).asked) == COUNT + stored.count(False)
    judge_all(cache, log)
    assert len(caplog.messages) <= 1


def test_every_flipped_byte_of_a_row_is_noticed(file_cache: AnswerCache, path: Path) -> None:
    value = b"a value that is long enough to be found in the file"
    file_cache.add("test", {key_of("a"): value})
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    content = path.read_bytes()
    for offset in range(content.index(value), content.index(value) + len(value)):
        path.write_bytes(content[:offset] + bytes([content[offset] ^ 1]) + content[offset + 1 :])
        assert AnswerCache(engine_url(str(path))).find([key_of("a")], bytes) == {}


def test_a_planted_pickle_is_not_run(cache: AnswerCache, tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[object, ...]:
            return (os.mkdir, (str(tmp_path / "sprung"),))

    log = tmp_path / "asked"
    judge_all(cache, log)
    rows = cache.database.read(lambda connection: connection.execute(ANSWERS.select().limit(20)).all())
    planted = pickle.dumps(Trap())
    for row in rows:
        forged = update(ANSWERS).where(ANSWERS.c.key == row.key)
        statement = forged.values(value=planted, checksum=checksum_bytes(row.key, planted))
        cache.database.write(lambda connection, statement=statement: connection.execute(statement))  # type: ignore[misc]
    assert judge_all(cache, log).count(False) == 20
    assert not (tmp_path / "sprung").exists()


CROWDED = """
import logging, resource, sys
from pathlib import Path
from tasks.cache.answer_cache import AnswerCache
from tests.tasks.cache.test_faults import COUNT, judge_all
{prepare}
logging.basicConfig()
cache = AnswerCache(sys.argv[1])
assert judge_all(cache, Path(sys.argv[2])) == [False] * COUNT
judge_all(cache, Path(sys.argv[2]))
"""


def run_crowded(prepare: str, path: Path, log: Path) -> str:
    """Judge in a separate process after a preparation, and return its log."""
    command = [sys.executable, "-c", CROWDED.format(prepare=prepare), engine_url(str(path)), str(log)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_a_full_disk(tmp_path: Path) -> None:
    prepare = "resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))"
    said = run_crowded(prepare, tmp_path / "answers.db", tmp_path / "asked")
    assert said.count("cannot be used") == 1
    assert "delete it" not in said  # it still has all earlier answers


def test_a_read_only_folder() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder, log = Path(name, "closed"), Path(name, "open", "asked")
        folder.mkdir(mode=0o555)
        log.parent.mkdir()
        for place in (Path(name), log.parent):
            place.chmod(0o777)
        # Root may write everywhere, so the process changes its user once all is imported.
        prepare = "import os, sqlite3, sqlalchemy.dialects.sqlite.pysqlite\nif os.geteuid() == 0: os.seteuid(65534)"
        said = run_crowded(prepare, folder / "answers.db", log)
        assert said.count("cannot be used") == 1
        assert list(folder.iterdir()) == []


def test_a_server_that_is_down(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    cache = AnswerCache(f"postgresql+psycopg://assay:s3cret@/answers?host={tmp_path}")
    judge_all(cache, tmp_path / "asked")
    assert len(caplog.messages) == 1
    assert "cannot be used" in caplog.text
    with pytest.raises(ConfigError, match=r"answer cache postgresql.*cannot be used") as caught:
        cache.ensure()
    assert "s3cret" not in caplog.text + str(caught.value)


def test_lost_connections_are_reopened(
    postgres_url: str, postgres_server: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache = AnswerCache(engine_url(postgres_url))
    judge_all(cache, tmp_path / "asked")
    lose_connections(postgres_server)
    assert judge_all(cache, tmp_path / "asked") == [True] * COUNT
    assert caplog.messages == []


@pytest.mark.served
def test_cached_answers_survive_a_server_that_goes_down(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = tmp_path / "asked"
    with start_postgres() as server:
        url = engine_url(new_database(server.folder))
        judge = CachedJudge(CountingJudge(log, seconds=0.01), AnswerCache(url))
        results: list[list[ChoiceAnswer]] = []
        judging = threading.Thread(target=lambda: results.append(judge.choose(numbered_questions(0, 100))))
        judging.start()
        wait_until(lambda: len(CountingJudge(log).asked) >= 40)
        server.stop()
        judging.join()
        (answers,) = results
        assert [answer.label for answer in answers] == ["yes"] * 100
        assert len(CountingJudge(log).asked) == 100
        (message,) = [record.getMessage() for record in caplog.records if record.name.startswith("tasks")]
        assert "cannot be used" in message
        assert "new answers may not be cached" in message
        server.start()
        again = CachedJudge(CountingJudge(log), AnswerCache(url)).choose(numbered_questions(0, 100))
        kept = sum(answer.stored for answer in again)
        assert 10 <= kept < 100
        assert len(CountingJudge(log).asked) == 200 - kept
        whole = CachedJudge(CountingJudge(log), AnswerCache(url)).choose(numbered_questions(0, 100))
        assert all(answer.stored for answer in whole)


def has_answers(path: Path, count: int) -> bool:
    """Return whether a SQLite cache has at least this number of answers."""
    with closing(sqlite3.connect(path)) as connection:
        found: int = connection.execute("SELECT count(*) FROM assay_answers").fetchone()[0]
    return found >= count


def test_a_cache_that_was_down_is_used_again(
    file_cache: AnswerCache, path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path.mkdir()
    file_cache.add("test", {key_of("a"): b"early"})
    path.rmdir()
    file_cache.add("test", {key_of("b"): b"late"}, replace=True)
    values = {key_of("a"): b"early", key_of("b"): b"late"}
    assert file_cache.find(list(values), bytes) == values  # from memory
    assert AnswerCache(engine_url(str(path))).find(list(values), bytes) == {}
    later = time.monotonic() + circuit_breaker.REST_SECONDS
    monkeypatch.setattr(time, "monotonic", lambda: later)
    file_cache.add("test", {})
    assert AnswerCache(engine_url(str(path))).find(list(values), bytes) == values
    assert len([record for record in caplog.records if record.levelno == logging.WARNING]) == 1


def test_pending_answers_are_written_at_the_end_of_a_run_or_a_warning_is_logged(
    file_cache: AnswerCache, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path.mkdir()
    file_cache.add("test", {key_of("a"): b"early"})
    file_cache.flush()
    assert "1 answers could not be written to the answer cache" in caplog.messages[-1]
    path.rmdir()
    file_cache.flush()
    assert AnswerCache(engine_url(str(path))).find([key_of("a")], bytes) == {key_of("a"): b"early"}
    assert len(caplog.messages) == 2


def test_pending_answers_have_a_bound(file_cache: AnswerCache, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answer_cache, "MAX_PENDING", 3)
    path.mkdir()
    keys = [key_of(str(number)) for number in range(5)]
    for key in keys:
        file_cache.add("test", {key: key})
    assert list(file_cache.find(keys, bytes)) == keys[:3]


def test_answers_wait_for_a_file_that_another_program_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_BUSY_TIMEOUT", 0.1)
    monkeypatch.setattr(circuit_breaker, "REST_SECONDS", 0.1)
    path, log = tmp_path / "answers.db", tmp_path / "asked"
    cache = AnswerCache(engine_url(str(path)))
    cache.ensure()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        CachedJudge(CountingJudge(log), cache).choose(numbered_questions(0, 20))
    assert not has_answers(path, 1)
    assert all(answer.stored for answer in CachedJudge(CountingJudge(log), cache).choose(numbered_questions(0, 20)))

    def written() -> bool:
        cache.add("test", {})
        return has_answers(path, 20)

    wait_until(written)
    assert len(CountingJudge(log).asked) == 20


def test_a_cache_of_a_later_format_is_refused(url: str) -> None:
    cache = AnswerCache(url)
    cache.ensure()
    cache.database.write(lambda connection: connection.execute(update(FORMATS).values(version=99)))
    later = AnswerCache(url)
    for use in (later.ensure, lambda: later.find([key_of("a")], bytes)):
        with pytest.raises(AssayError, match=r"format 99.*newer rag-assay"):
            use()


def test_the_message_of_a_damaged_file_says_to_delete_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "answers.db"
    path.write_bytes(b"x" * 8192)
    AnswerCache(engine_url(str(path))).find([key_of("a")], bytes)
    assert "file is not a database" in caplog.text
    assert "delete it" in caplog.text


def test_ensure_refuses_a_file_that_cannot_be_used(tmp_path: Path) -> None:
    path = tmp_path / "answers.db"
    path.write_bytes(b"x" * 8192)
    with pytest.raises(ConfigError, match=r"answers\.db cannot be used: file is not a database"):
        AnswerCache(engine_url(str(path))).ensure()
