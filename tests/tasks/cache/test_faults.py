"""A store that can not be used costs time, never a result, and says so once."""

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
from tasks.cache import answer_cache as store_module
from tasks.cache import circuit_breaker as guard
from tasks.cache import database
from tasks.cache.answer_cache import AnswerCache, checksum_bytes
from tasks.cache.cache_address import engine_url
from tasks.cache.cache_tables import ANSWERS, FORMATS
from tasks.cache.cached_judge import CachedJudge
from tasks.judges.protocol import ChoiceAnswer
from tests.postgres import lose_connections, new_database, postgres_at_hand
from tests.tasks.cache.helpers import CountingJudge, key_of, numbered, wait_until

COUNT = 1500


def judged(store: AnswerCache, log: Path) -> list[bool]:
    """Judges some questions; whether each answer came from the store."""
    answers = CachedJudge(CountingJudge(log), store).choose(numbered(0, COUNT))
    assert [answer.label for answer in answers] == ["yes"] * COUNT
    return [answer.stored for answer in answers]


def filled(path: Path, log: Path) -> None:
    """A store on a file that holds the answers to all questions, closed."""
    assert judged(AnswerCache(engine_url(str(path))), log) == [False] * COUNT
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
    path, log = tmp_path / "store" / "answers.db", tmp_path / "asked"
    filled(path, log)
    damage(path)
    store = AnswerCache(engine_url(str(path)))
    stored = judged(store, log)
    assert len(CountingJudge(log).asked) == COUNT + stored.count(False)
    judged(store, log)
    assert len(caplog.messages) <= 1


def test_every_flipped_byte_of_a_row_is_noticed(file_store: AnswerCache, path: Path) -> None:
    value = b"a value that is long enough to be found in the file"
    file_store.add("test", {key_of("a"): value})
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    content = path.read_bytes()
    for offset in range(content.index(value), content.index(value) + len(value)):
        path.write_bytes(content[:offset] + bytes([content[offset] ^ 1]) + content[offset + 1 :])
        assert AnswerCache(engine_url(str(path))).find([key_of("a")], bytes) == {}


def test_a_planted_pickle_is_not_run(store: AnswerCache, tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> tuple[object, ...]:
            return (os.mkdir, (str(tmp_path / "sprung"),))

    log = tmp_path / "asked"
    judged(store, log)
    rows = store.database.read(lambda connection: connection.execute(ANSWERS.select().limit(20)).all())
    planted = pickle.dumps(Trap())
    for row in rows:
        forged = update(ANSWERS).where(ANSWERS.c.key == row.key)
        statement = forged.values(value=planted, checksum=checksum_bytes(row.key, planted))
        store.database.write(lambda connection, statement=statement: connection.execute(statement))  # type: ignore[misc]
    assert judged(store, log).count(False) == 20
    assert not (tmp_path / "sprung").exists()


CROWDED = """
import logging, resource, sys
from pathlib import Path
from tasks.cache.answer_cache import AnswerCache
from tests.tasks.cache.test_faults import COUNT, judged
{prepare}
logging.basicConfig()
store = AnswerCache(sys.argv[1])
assert judged(store, Path(sys.argv[2])) == [False] * COUNT
judged(store, Path(sys.argv[2]))
"""


def run_crowded(prepare: str, path: Path, log: Path) -> str:
    """Judges in a process of its own after a preparation; what it logged."""
    command = [sys.executable, "-c", CROWDED.format(prepare=prepare), engine_url(str(path)), str(log)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_a_full_disk(tmp_path: Path) -> None:
    prepare = "resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, 150_000))"
    said = run_crowded(prepare, tmp_path / "answers.db", tmp_path / "asked")
    assert said.count("can not be used") == 1
    assert "delete it" not in said  # it holds all that was kept before


def test_a_read_only_folder() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder, log = Path(name, "closed"), Path(name, "open", "asked")
        folder.mkdir(mode=0o555)
        log.parent.mkdir()
        for place in (Path(name), log.parent):
            place.chmod(0o777)
        # Root may write everywhere, so it becomes somebody else once all is imported.
        prepare = "import os, sqlite3, sqlalchemy.dialects.sqlite.pysqlite\nif os.geteuid() == 0: os.seteuid(65534)"
        said = run_crowded(prepare, folder / "answers.db", log)
        assert said.count("can not be used") == 1
        assert list(folder.iterdir()) == []


def test_a_server_that_is_down(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store = AnswerCache(f"postgresql+psycopg://assay:s3cret@/answers?host={tmp_path}")
    judged(store, tmp_path / "asked")
    assert len(caplog.messages) == 1
    assert "can not be used" in caplog.text
    with pytest.raises(ConfigError, match=r"store of answers postgresql.*can not be used") as caught:
        store.ensure()
    assert "s3cret" not in caplog.text + str(caught.value)


def test_lost_connections_are_made_anew(
    postgres_url: str, postgres_server: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = AnswerCache(engine_url(postgres_url))
    judged(store, tmp_path / "asked")
    lose_connections(postgres_server)
    assert judged(store, tmp_path / "asked") == [True] * COUNT
    assert caplog.messages == []


def test_a_server_that_goes_down_while_the_judge_works_loses_nothing_that_was_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = tmp_path / "asked"
    with postgres_at_hand() as server:
        url = engine_url(new_database(server.folder))
        judge = CachedJudge(CountingJudge(log, seconds=0.01), AnswerCache(url))
        results: list[list[ChoiceAnswer]] = []
        judging = threading.Thread(target=lambda: results.append(judge.choose(numbered(0, 100))))
        judging.start()
        wait_until(lambda: len(CountingJudge(log).asked) >= 40)
        server.stop()
        judging.join()
        (answers,) = results
        assert [answer.label for answer in answers] == ["yes"] * 100
        assert len(CountingJudge(log).asked) == 100
        (message,) = [record.getMessage() for record in caplog.records if record.name.startswith("tasks")]
        assert "can not be used" in message
        assert "computed may not be kept" in message
        server.start()
        again = CachedJudge(CountingJudge(log), AnswerCache(url)).choose(numbered(0, 100))
        kept = sum(answer.stored for answer in again)
        assert 10 <= kept < 100
        assert len(CountingJudge(log).asked) == 200 - kept
        whole = CachedJudge(CountingJudge(log), AnswerCache(url)).choose(numbered(0, 100))
        assert all(answer.stored for answer in whole)


def keeps(path: Path, count: int) -> bool:
    """Whether a store on a file holds so many answers at least."""
    with closing(sqlite3.connect(path)) as connection:
        found: int = connection.execute("SELECT count(*) FROM assay_answers").fetchone()[0]
    return found >= count


def test_a_store_that_was_down_is_used_again(
    file_store: AnswerCache, path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path.mkdir()
    file_store.add("test", {key_of("a"): b"early"})
    path.rmdir()
    file_store.add("test", {key_of("b"): b"late"}, replace=True)
    values = {key_of("a"): b"early", key_of("b"): b"late"}
    assert file_store.find(list(values), bytes) == values  # from memory
    assert AnswerCache(engine_url(str(path))).find(list(values), bytes) == {}
    later = time.monotonic() + guard.REST_SECONDS
    monkeypatch.setattr(time, "monotonic", lambda: later)
    file_store.add("test", {})
    assert AnswerCache(engine_url(str(path))).find(list(values), bytes) == values
    assert len([record for record in caplog.records if record.levelno == logging.WARNING]) == 1


def test_what_waits_is_written_at_the_end_of_a_run_or_told(
    file_store: AnswerCache, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path.mkdir()
    file_store.add("test", {key_of("a"): b"early"})
    file_store.settle()
    assert "1 answers could not be kept" in caplog.messages[-1]
    path.rmdir()
    file_store.settle()
    assert AnswerCache(engine_url(str(path))).find([key_of("a")], bytes) == {key_of("a"): b"early"}
    assert len(caplog.messages) == 2


def test_what_waits_for_a_store_has_a_bound(
    file_store: AnswerCache, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "MOST_LATE", 3)
    path.mkdir()
    keys = [key_of(str(number)) for number in range(5)]
    for key in keys:
        file_store.add("test", {key: key})
    assert list(file_store.find(keys, bytes)) == keys[:3]


def test_answers_wait_for_a_file_that_another_program_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_BUSY_TIMEOUT", 0.1)
    monkeypatch.setattr(guard, "REST_SECONDS", 0.1)
    path, log = tmp_path / "answers.db", tmp_path / "asked"
    store = AnswerCache(engine_url(str(path)))
    store.ensure()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        CachedJudge(CountingJudge(log), store).choose(numbered(0, 20))
    assert not keeps(path, 1)
    assert all(answer.stored for answer in CachedJudge(CountingJudge(log), store).choose(numbered(0, 20)))

    def written() -> bool:
        store.add("test", {})
        return keeps(path, 20)

    wait_until(written)
    assert len(CountingJudge(log).asked) == 20


def test_a_store_of_a_later_format_is_refused(url: str) -> None:
    store = AnswerCache(url)
    store.ensure()
    store.database.write(lambda connection: connection.execute(update(FORMATS).values(version=99)))
    later = AnswerCache(url)
    for use in (later.ensure, lambda: later.find([key_of("a")], bytes)):
        with pytest.raises(AssayError, match=r"format 99.*newer rag-assay"):
            use()


def test_only_a_damaged_file_is_to_be_deleted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "answers.db"
    path.write_bytes(b"x" * 8192)
    AnswerCache(engine_url(str(path))).find([key_of("a")], bytes)
    assert "file is not a database" in caplog.text
    assert "delete it" in caplog.text


def test_a_file_that_can_not_be_used_is_told_beforehand(tmp_path: Path) -> None:
    path = tmp_path / "answers.db"
    path.write_bytes(b"x" * 8192)
    with pytest.raises(ConfigError, match=r"answers\.db can not be used: file is not a database"):
        AnswerCache(engine_url(str(path))).ensure()
