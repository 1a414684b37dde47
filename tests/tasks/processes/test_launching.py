"""A judge is launched, found again, refused where it differs, and stopped whole."""

import json
import os
import signal
import socket
import stat
import sys
import threading
from pathlib import Path
from urllib.request import urlopen

import pytest

from metric_core.errors import ConfigError, JudgeError
from tasks.options.launch_options import LaunchSettings
from tasks.processes.judge_service import JudgeRecord, JudgeService, judge_status, launch_judge, stop_judge
from tests.tasks.processes.conftest import Settings, is_gone
from tests.waiting import wait_until


def said_by(judge: JudgeRecord) -> list[str]:
    with urlopen(judge.url.removesuffix("/v1") + "/self") as answer:
        return str(answer.read(), "utf-8").splitlines()


def test_a_judge_is_launched_with_the_options_and_no_telemetry(home: Path, settings: Settings) -> None:
    judge = launch_judge(settings(served_name="judge", max_model_len=4096, extra_args=["--enforce-eager"]), home)

    said = said_by(judge)
    assert said[: said.index("--host")] == [
        *("--model", "tiny", "--enable-prompt-tokens-details", "--served-model-name", "judge", "--dtype", "auto"),
        *("--tensor-parallel-size", "1", "--max-model-len", "4096"),
    ]
    assert "--enforce-eager" in said
    assert {"VLLM_NO_USAGE_STATS=1", "DO_NOT_TRACK=1"} <= set(said)
    assert judge.url.startswith("http://127.0.0.1:")


def test_the_judge_runs_in_a_session_of_its_own(home: Path, settings: Settings) -> None:
    judge = launch_judge(settings(), home)

    assert os.getsid(judge.pid) == os.getpgid(judge.pid) == judge.pid
    assert stat.S_IMODE((home / "judge" / "judge.log").stat().st_mode) == 0o600
    assert stat.S_IMODE((home / "judge").stat().st_mode) == 0o700


def test_status_says_what_runs_and_stop_ends_all_of_it(home: Path, settings: Settings) -> None:
    assert str(judge_status(home)) == f"no judge is running (folder {home / 'judge'})"
    assert not stop_judge(home)

    judge = launch_judge(settings("child"), home)
    status = judge_status(home)
    assert status.healthy
    assert status.record is not None
    assert (status.record.url, status.record.pid, status.record.model) == (judge.url, judge.pid, "tiny")
    assert f"{judge.url} serves tiny with vLLM (ready, process {judge.pid}, launched" in str(status)

    assert stop_judge(home)
    assert is_gone(judge.pid)
    assert judge_status(home).record is None
    assert not stop_judge(home)


def test_one_that_does_not_end_when_asked_is_killed(home: Path, settings: Settings) -> None:
    judge = launch_judge(settings("stubborn,child"), home)

    assert stop_judge(home)
    assert is_gone(judge.pid)


def test_equal_settings_share_a_judge(home: Path, settings: Settings) -> None:
    first = launch_judge(settings(), home)
    assert launch_judge(settings(start_timeout=5), home) == first


def test_callers_at_the_same_time_share_a_judge(home: Path, settings: Settings) -> None:
    found: list[JudgeRecord] = []
    threads = [threading.Thread(target=lambda: found.append(launch_judge(settings(), home))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found.count(found[0]) == 4


def test_other_settings_are_refused_and_say_what_to_do(home: Path, settings: Settings) -> None:
    launch_judge(settings("child"), home)

    with pytest.raises(JudgeError, match=r"model is 'tiny', wanted 'large'.*assay judge stop"):
        launch_judge(settings("child", model="large"), home)
    with pytest.raises(JudgeError, match="a value in environment") as error:
        launch_judge(settings("another-behaviour"), home)
    assert "another-behaviour" not in str(error.value)


def test_one_that_ends_early_is_explained_by_its_log(home: Path, settings: Settings) -> None:
    with pytest.raises(JudgeError) as error:
        launch_judge(settings("exit", environment={"HF_TOKEN": "hf_secret"}), home)

    message = str(error.value)
    assert "ended with exit code 1 before it was ready" in message
    assert "ValueError: No available memory for the cache blocks." in message
    assert "INFO line 99" in message
    assert "INFO line 9\n" not in message
    assert "Token: [hidden]" in message
    assert judge_status(home).record is None


def test_one_that_ends_without_a_word_is_explained(home: Path, settings: Settings) -> None:
    with pytest.raises(JudgeError, match=r"exit code 3.*\n.*written nothing to its log"):
        launch_judge(settings("silent"), home)


def test_one_that_does_not_get_ready_in_time_is_stopped(home: Path, settings: Settings) -> None:
    with pytest.raises(JudgeError, match=r"not ready within 1.5 s \(start_timeout\)"):
        launch_judge(settings("never", start_timeout=1.5), home)
    assert judge_status(home).record is None


def test_progress_tells_the_last_line_of_the_log(home: Path, settings: Settings) -> None:
    told: list[tuple[float, str]] = []
    with pytest.raises(JudgeError):
        launch_judge(settings("never", start_timeout=4), home, lambda seconds, line: told.append((seconds, line)))
    assert told[-1][1] == "INFO ready"
    assert [seconds for seconds, _ in told] == sorted(seconds for seconds, _ in told)


def test_an_interrupt_while_it_starts_leaves_nothing(home: Path, settings: Settings) -> None:
    def interrupt(_seconds: float, _line: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        launch_judge(settings("never"), home, interrupt)
    assert judge_status(home).record is None


def test_without_waiting_it_is_there_but_not_ready(home: Path, settings: Settings) -> None:
    judge = launch_judge(settings("never"), home, wait=False)
    status = judge_status(home)
    assert status.record is not None
    assert status.record.pid == judge.pid
    assert not status.healthy
    assert "starting, or not answering" in str(status)


def test_a_killed_judge_makes_way_for_a_new_one(home: Path, settings: Settings) -> None:
    first = launch_judge(settings(), home)
    os.kill(first.pid, signal.SIGKILL)
    wait_until(lambda: judge_status(home).record is None)

    assert launch_judge(settings(model="large"), home).pid != first.pid


def test_processes_of_a_killed_judge_are_ended(home: Path, settings: Settings) -> None:
    judge = launch_judge(settings("orphaning"), home)
    urlopen(judge.url.removesuffix("/v1") + "/end").close()
    wait_until(lambda: judge_status(home).record is None)
    assert not is_gone(judge.pid)

    assert stop_judge(home)
    assert is_gone(judge.pid)


def test_a_group_that_got_the_number_of_a_judge_after_a_restart_is_left_alone(home: Path, settings: Settings) -> None:
    judge = launch_judge(settings("orphaning"), home)
    urlopen(judge.url.removesuffix("/v1") + "/end").close()
    wait_until(lambda: judge_status(home).record is None)
    path = home / "judge" / "judge.json"
    record = json.loads(path.read_text())
    if "-" not in record["started"]:
        pytest.skip("this system does not tell one start of the machine from another")
    path.write_text(json.dumps({**record, "started": "another-start 5"}))

    assert not stop_judge(home)
    assert not is_gone(judge.pid)

    path.write_text(json.dumps(record))


def test_a_process_that_got_the_number_of_a_judge_is_left_alone(home: Path, settings: Settings) -> None:
    judge = launch_judge(settings(), home)
    path = home / "judge" / "judge.json"
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "started": "at another time"}))

    assert judge_status(home).record is None
    assert not stop_judge(home)
    assert not is_gone(judge.pid)

    path.write_text(json.dumps(record))


def test_the_judge_of_another_machine_is_left_alone(home: Path, settings: Settings) -> None:
    launch_judge(settings(), home)
    path = home / "judge" / "judge.json"
    record = json.loads(path.read_text())
    path.write_text(json.dumps({**record, "host": "elsewhere"}))

    for action in (lambda: launch_judge(settings(), home), lambda: stop_judge(home), lambda: judge_status(home)):
        with pytest.raises(JudgeError, match="another machine, elsewhere"):
            action()

    path.write_text(json.dumps(record))


def test_a_port_that_is_taken_is_refused(home: Path, settings: Settings) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(JudgeError, match=f"cannot listen on port {port}.*or 0 for a free one"):
            launch_judge(settings(port=port), home)


def test_an_address_of_another_machine_is_refused(home: Path, settings: Settings) -> None:
    with pytest.raises(JudgeError, match=r"cannot listen on 192\.0\.2\.1: .*\. Set another judge\.launch\.host\."):
        launch_judge(settings(host="192.0.2.1"), home)


def test_a_python_that_does_not_exist_is_refused(home: Path) -> None:
    with pytest.raises(ConfigError, match=r"judge.launch.python is '/no/python', but there is no such program"):
        launch_judge(LaunchSettings(python="/no/python", model="tiny"), home)
    with pytest.raises(ConfigError, match=r"^judge.verdicts.launch.python is '/no/python'"):
        JudgeService.from_home(home).start(LaunchSettings(python="/no/python", model="tiny"), role="verdicts")


def test_a_python_without_vllm_is_explained(home: Path) -> None:
    with pytest.raises(JudgeError, match=r"exit code 1 before it was ready\. Its Python has no vLLM: `assay judge"):
        launch_judge(LaunchSettings(python=sys.executable, model="tiny"), home)
