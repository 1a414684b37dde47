"""A database that falls silent is given up: a cache counts as empty, the history says that it cannot be used."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from metric_core.errors import ConfigError
from tasks.cache.answer_cache import AnswerCache
from tasks.cache.cached_judge import CachedJudge
from tasks.cache.maintenance import statistics
from tasks.history.catalogue import Catalogue
from tasks.runtime import guarded_connection
from tasks.runtime.database_address import engine_url
from tests.postgres import new_database
from tests.relay import Relay
from tests.tasks.cache.helpers import CountingJudge, key_of, numbered_questions


@pytest.fixture
def relay(postgres_server: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Relay]:
    monkeypatch.setattr(guarded_connection, "ANSWER_SECONDS", 0.3)
    monkeypatch.setattr("tasks.runtime.database._CONNECT_TIMEOUT", 2)  # the least of the driver
    with Relay("postgresql://127.0.0.1:5432", postgres_server / ".s.PGSQL.5432") as relay:
        yield relay


@pytest.fixture
def address(relay: Relay, postgres_server: Path) -> str:
    """Return the address of an empty database behind the relay."""
    name = urlsplit(new_database(postgres_server)).path
    return f"postgresql://assay@127.0.0.1:{urlsplit(relay.url).port}{name}"


@pytest.mark.served
def test_a_cache_that_goes_dark_counts_as_empty(
    relay: Relay, address: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache, log = AnswerCache(engine_url(address)), tmp_path / "asked"
    judge = CachedJudge(CountingJudge(log), cache)
    judge.choose(numbered_questions(0, 20))
    assert all(answer.stored for answer in judge.choose(numbered_questions(0, 20)))
    relay.go_dark()
    answers = judge.choose(numbered_questions(0, 30))
    assert [answer.label for answer in answers] == ["yes"] * 30
    assert len(CountingJudge(log).asked) == 50
    (message,) = [record.getMessage() for record in caplog.records if record.name.startswith("tasks")]
    assert "cannot be used" in message


def test_a_silent_server_is_named_and_the_connection_closed(relay: Relay, address: str) -> None:
    cache = AnswerCache(engine_url(address))
    cache.add("test", {key_of("a"): b"a"})
    relay.go_dark()
    with pytest.raises(ConfigError, match=r"cannot be used: (no reply from the server|connection timeout)"):
        cache.ensure()


def test_a_history_that_goes_dark_says_so(relay: Relay, address: str) -> None:
    catalogue = Catalogue(address)
    assert list(catalogue.names()) == []
    relay.go_dark()
    with pytest.raises(ConfigError, match=r"the history .* cannot be read"):
        catalogue.names()


def test_a_slow_statement_ends_and_maintenance_may_take_longer(address: str) -> None:
    cache = AnswerCache(engine_url(address))
    cache.ensure()
    with pytest.raises(OperationalError, match="statement timeout"):
        cache.database.read(lambda connection: connection.execute(text("SELECT pg_sleep(60)")))
    slow = cache.database.maintain(lambda connection: connection.execute(text("SELECT 1 FROM pg_sleep(0.6)")).scalar())
    assert slow == 1
    assert statistics(cache) is not None
    with pytest.raises(OperationalError, match="statement timeout"):
        cache.database.read(lambda connection: connection.execute(text("SELECT pg_sleep(60)")))
