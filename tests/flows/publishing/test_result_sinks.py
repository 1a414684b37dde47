"""Results of runs at their sinks: what waits is sent by the next run, and nothing twice."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from flows.config.run_config import RunConfig
from flows.publishing import result_sinks
from flows.publishing.result_sinks import send_again, send_results
from metric_core.errors import ConfigError
from tasks.history.message_log import MessageLog
from tasks.reports.exports import sinks
from tasks.reports.exports.sink import Sink, SinkError
from tasks.runs.run_folder import RunFolder
from tests.tasks.compared import write_run

Run = Callable[[str], Path]


@dataclass
class House:
    """A sink that fails with an error while it has one."""

    got: list[str] = field(default_factory=list)
    error: Exception | None = None

    def send(self, address: str, folder: Path) -> str:
        self.got.append(f"{address} {folder.name}")
        if self.error is not None:
            raise self.error
        return f"kept {folder.name}"


@pytest.fixture
def house(monkeypatch: pytest.MonkeyPatch) -> House:
    found = House()
    monkeypatch.setattr(sinks, "_BUILT_IN", {"house": Sink(lambda _address: None, found.send)})
    return found


@pytest.fixture
def options(tmp_path: Path) -> RunConfig:
    return RunConfig.model_validate({"sinks": {"house": "house://a"}, "history": str(tmp_path / "history.db")})


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def write(name: str) -> Path:
        folder = tmp_path / name
        return folder if folder.exists() else write_run(folder, 0.5, run_id=name)

    return write


def waiting(options: RunConfig) -> list[str]:
    log = MessageLog(options.history)
    return [each.alert_id for each in log.messages(result_sinks.ABOUT, state="waiting")]


def test_what_a_sink_does_not_accept_is_sent_by_the_next_run_and_nothing_twice(
    house: House, options: RunConfig, run: Run
) -> None:
    assert send_results(options, run("one")) == ()
    house.error = SinkError("it cannot be reached")
    (warning,) = send_results(options, run("two"))
    assert warning.startswith("house at house://a has not accepted the results of 1 run since")
    assert "it cannot be reached. The next run sends them, or `assay export" in warning
    assert warning.endswith("/two --sink house=house://a`")
    (warning,) = send_results(options, run("three"))
    assert "the results of 2 runs since" in warning
    assert house.got == ["house://a one", "house://a two", "house://a two"]  # one try finds out that it is down
    house.error = None
    assert send_results(options, run("four")) == ()
    assert house.got[3:] == ["house://a two", "house://a three", "house://a four"]
    assert send_results(options, run("four")) == ()  # as a run that is resumed does
    assert len(house.got) == 6
    assert waiting(options) == []


def test_a_monitored_run_sends_its_results_later(house: House, options: RunConfig, run: Run) -> None:
    assert send_results(options, run("one"), later=True) == ()
    assert (house.got, waiting(options)) == ([], ["one"])
    assert send_results(options, run("one")) == ()
    assert house.got == ["house://a one"]


def test_results_that_are_refused_hold_back_no_others(house: House, options: RunConfig, run: Run) -> None:
    house.error = SinkError("no such parameter", is_lasting=True)
    assert len(send_results(options, run("one"))) == 1
    send_results(options, run("two"), later=True)
    assert len(send_results(options, run("three"))) == 1
    assert house.got == ["house://a one", "house://a one", "house://a two", "house://a three"]


def test_a_sink_with_an_error_of_its_own_costs_a_warning_without_its_message(
    house: House, options: RunConfig, run: Run
) -> None:
    house.error = KeyError("secret")
    (warning,) = send_results(options, run("one"))
    assert "KeyError" in warning
    assert "secret" not in warning


def test_results_of_a_folder_that_another_run_has_replaced_wait_two_weeks(
    house: House, options: RunConfig, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    send_results(options, run("one"), later=True)
    shutil.rmtree(tmp_path / "one")
    write_run(tmp_path / "one", 0.5, run_id="other")
    (warning,) = send_results(options, run("two"))
    assert "another run has replaced the one in" in warning
    assert house.got == ["house://a two"]
    monkeypatch.setattr(result_sinks, "_now", lambda: datetime.now(UTC) + timedelta(days=15))
    (warning,) = send_results(options, run("three"))
    assert "never got the results of a run: another run has replaced" in warning
    assert send_results(options, run("four")) == ()


def test_without_a_history_results_are_sent_at_once(house: House, options: RunConfig, run: Run, tmp_path: Path) -> None:
    options = options.model_copy(update={"history": str(tmp_path)})  # a folder
    assert send_results(options, run("one"), later=True) == ()
    assert send_results(options, run("one")) == ()
    house.error = SinkError("it cannot be reached")
    (warning,) = send_results(options, run("two"))
    assert warning.startswith("house at house://a does not have the results: it cannot be reached. Send them by `assay")
    assert len(house.got) == 2


def test_a_person_sends_results_again(house: House, options: RunConfig, run: Run) -> None:
    house.error = SinkError("it cannot be reached")
    send_results(options, run("one"))
    with pytest.raises(SinkError):
        send_again(options.history, "house", "house://a", run("one"))
    house.error = None
    assert send_again(options.history, "house", "house://a", run("one")) == "kept one"
    assert waiting(options) == []
    assert send_again(options.history, "house", "house://a", run("one")) == "kept one"


@pytest.mark.usefixtures("house")
def test_an_unknown_sink_is_named_before_the_run() -> None:
    with pytest.raises(ConfigError, match="results cannot be sent to 'hose', but to house"):
        sinks.find_sink("hose")


def test_the_folder_of_a_run_is_left_as_it_is(house: House, options: RunConfig, run: Run) -> None:
    folder = run("one")
    before = sorted(path.name for path in folder.iterdir())
    send_results(options, folder)
    assert house.got
    assert sorted(path.name for path in folder.iterdir()) == before
    assert RunFolder(folder).read_finished_record().run_id == "one"
