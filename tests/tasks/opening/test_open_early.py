"""A judge that is opened early is the judge that the run takes, and its error is that of the run."""

from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from metric_core.errors import AssayError, JudgeError
from tasks.cache.cached_judge import CachedJudge
from tasks.models.judges.openai.openai_judge import OpenAIJudge
from tasks.opening import run_models
from tasks.opening.caches import open_cache
from tasks.opening.run_models import RunModels, open_early
from tasks.options.judge_options import JudgeSettings
from tasks.options.judged_settings import JudgedSettings
from tests.tasks.models.judges.openai.fake_server import FULL, FakeServer
from tests.waiting import wait_until


@pytest.fixture
def server() -> Iterator[FakeServer]:
    with FakeServer(FULL) as server:
        yield server


def settings_for(url: str, folder: object) -> JudgedSettings:
    judge = JudgeSettings.model_validate({"backend": "server", "server": {"urls": [url], "unavailable_timeout": 0.1}})
    return JudgedSettings.model_validate({"judge": judge, "cache": f"sqlite:///{folder}/answers.db"})


def test_the_first_run_takes_the_judge_and_the_next_opens_its_own(server: FakeServer, tmp_path: object) -> None:
    settings = settings_for(server.url, tmp_path)
    open_early(settings.judges, settings)
    open_early(settings.judges, settings)
    taken = RunModels().open_judges(settings)
    other = RunModels().open_judges(settings)
    assert isinstance(taken, CachedJudge)
    assert isinstance(other, CachedJudge)
    assert isinstance(taken._judge, OpenAIJudge)
    assert taken._judge is not other._judge
    assert not run_models._EARLY


def test_the_cache_is_connected_once_for_all_judges(
    server: FakeServer, tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    connected: list[str | None] = []
    monkeypatch.setattr(run_models, "_connect_cache", connected.append)
    settings = settings_for(server.url, tmp_path)
    with FakeServer(FULL) as second:
        other = settings_for(second.url, tmp_path)
        open_early([*settings.judges, *other.judges, *settings.judges], settings)
        assert len(run_models._EARLY) == 2
        for each in (settings, other):
            RunModels().open_judges(each)
    wait_until(lambda: bool(connected))
    assert connected == [settings.cache]


def test_the_cache_is_connected_before_it_is_asked(server: FakeServer, tmp_path: Path) -> None:
    settings = settings_for(server.url, tmp_path)
    run_models._connect_cache(settings.cache)
    assert (tmp_path / "answers.db").is_file()


def test_a_cache_that_cannot_be_connected_is_reported_by_whoever_asks_it(tmp_path: Path) -> None:
    (tmp_path / "answers.db").write_bytes(b"not a database" * 100)
    cache = f"sqlite:///{tmp_path}/answers.db"
    run_models._connect_cache(cache)
    with pytest.raises(AssayError, match="not a database"):
        open_cache(cache).ensure()


def test_its_error_is_raised_when_the_run_opens_it(tmp_path: object) -> None:
    settings = settings_for("http://127.0.0.1:9/v1", tmp_path)
    open_early(settings.judges, settings)
    with pytest.raises(JudgeError, match="cannot be reached"):
        RunModels().open_judges(settings)


def test_other_judges_are_not_opened_early(tmp_path: object) -> None:
    settings = JudgedSettings.model_validate({"judge": {"backend": "builtin"}, "cache": f"sqlite:///{tmp_path}/a.db"})
    open_early(settings.judges, settings)
    assert not run_models._EARLY


def test_a_judge_that_no_thread_opens_is_opened_by_the_run(
    server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_for(server.url, tmp_path)
    with monkeypatch.context() as patch:

        def refuse(_self: Thread) -> None:
            raise RuntimeError("can't start new thread")

        patch.setattr(Thread, "start", refuse)
        open_early(settings.judges, settings)
    assert not run_models._EARLY
    assert isinstance(RunModels().open_judges(settings), CachedJudge)
