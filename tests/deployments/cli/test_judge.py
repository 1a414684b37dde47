"""`assay judge` with a small server instead of vLLM."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tasks.processes.judge_service import stop_judge
from tests.deployments.cli.conftest import Outcome
from tests.tasks.models.judges.openai.fake_server import FakeServer
from tests.tasks.processes import fake_vllm
from tests.tasks.processes.conftest import ROOT

Assay = Callable[..., Outcome]

CONFIG = f"""
[judge.launch]
python = {json.dumps(sys.executable)}
model = "tiny"
entry = "{fake_vllm.__name__}"
environment = {{PYTHONPATH = {json.dumps(str(ROOT))}}}
"""


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A configuration that launches the small server, in a separate home."""
    monkeypatch.setenv("ASSAY_HOME", str(tmp_path / "home"))
    path = tmp_path / "assay.toml"
    path.write_text(CONFIG)
    yield str(path)
    for role in ("", "verifier"):
        stop_judge(tmp_path / "home", role)


def test_judge_is_started_shown_and_stopped(assay: Assay, config: str) -> None:
    started = json.loads(assay("judge", "start", "--config", config, "--served-name", "judge", "--json").out)
    assert started["healthy"]
    assert started["model"] == "judge"

    seen = json.loads(assay("judge", "status", "--json").out)
    assert (seen["url"], seen["pid"]) == (started["url"], started["pid"])
    assert seen["uptime"] >= started["uptime"]
    assert started["url"] in assay("judge", "status").out

    assert assay("judge", "stop").out == "stopped\n"
    assert assay("judge", "stop").out == "no judge was running\n"
    assert json.loads(assay("judge", "status", "--json").out)["running"] is False


def test_a_pair_is_a_writer_and_a_verifier_with_shares_of_the_memory(assay: Assay, config: str) -> None:
    started = assay("judge", "start", "--config", config, "--pair")
    shown = started.out
    found = json.loads(assay("judge", "status", "--json").out)
    assert "verifier" in found, started.err
    verifier = found["verifier"]
    assert f"assay run SOURCE --judge {found['url']} --judge-verdicts lettucedetect@{verifier['url']}" in shown
    assert (found["model"], verifier["model"]) == ("tiny", "KRLabsOrg/lettucedect-large-modernbert-en-v1")
    records = [json.loads(path.read_text()) for path in sorted((Path(found["log"]).parents[1]).glob("judge*/*.json"))]
    assert [record["settings"]["gpu_memory_utilization"] for record in records] == [0.75, 0.12]

    assert assay("judge", "stop").out == "stopped\n"
    assert "verifier" not in json.loads(assay("judge", "status", "--json").out)


def test_a_pair_has_no_other_profile(assay: Assay, config: str) -> None:
    refused = assay("judge", "start", "--config", config, "--pair", "--profile", "minicheck-7b")
    assert (refused.code, "leave out --profile" in refused.err) == (2, True)


def test_starting_it_says_how_to_use_and_to_stop_it(assay: Assay, config: str) -> None:
    shown = assay("judge", "start", "-c", config).out
    assert "serves tiny with vLLM (ready, process" in shown
    assert "assay run SOURCE --judge http://127.0.0.1:" in shown
    assert "assay judge stop" in shown


def test_without_waiting_it_returns_at_once(assay: Assay, config: str) -> None:
    assert json.loads(assay("judge", "start", "-c", config, "--no-wait", "--json").out)["running"]


def test_other_options_than_those_of_the_running_judge_are_refused(assay: Assay, config: str) -> None:
    assay("judge", "start", "-c", config, "--no-wait")
    refused = assay("judge", "start", "-c", config, "--max-model-len", "4096")
    assert refused.code == 4
    assert "max_model_len is None, wanted 4096" in refused.err


def test_a_judge_that_does_not_start_is_a_message(assay: Assay, config: str) -> None:
    failed = assay("judge", "start", "-c", config, "--extra-args", "--one 'two three'", "--python", "/no/python")
    assert failed.code == 2
    assert "there is no such program" in failed.err
    assert "Traceback" not in failed.err


def test_missing_settings_are_named(assay: Assay, config: str) -> None:  # noqa: ARG001 sets the home
    refused = assay("judge", "start")
    assert refused.code == 2
    assert "Name its model" in refused.err
    assert "[judge.launch]" in refused.err


def test_a_question_is_tried_and_request_reply_and_probability_are_shown(assay: Assay, tmp_path: Path) -> None:
    with FakeServer() as server:
        shown = assay("judge", "try", "Paris lies on the Seine.", "Paris has a river.", "--judge", server.url).out
        assert f"request: POST chat/completions to {server.url}" in shown
        assert json.dumps(server.asked[-1]["messages"][-1]["content"], ensure_ascii=False) in shown
        assert "reply: status 200 after" in shown
        assert "verdict: yes, probability 1.0000" in shown
        asked = len(server.asked)
        passage, config = tmp_path / "passage.txt", tmp_path / "assay.toml"
        passage.write_text("Paris lies on the Seine.")
        config.write_text(f'[judge]\nlaunch = {{python = "python3", model = "m"}}\nverdicts = "{server.url}"\n')
        told = json.loads(assay("judge", "try", f"@{passage}", "Paris has a river.", "-c", str(config), "--json").out)
        assert len(server.asked) == asked + 1  # it is asked again, although the answer is cached
    assert (told["verdict"], told["status"], len(told["requests"])) == ("yes", "answered", 1)
    assert told["probability"] == pytest.approx(1.0)
    assert told["requests"][0]["body"]["messages"]


def test_a_judge_in_this_process_is_tried_without_requests_and_a_launched_one_is_refused(
    assay: Assay, config: str
) -> None:
    shown = assay("judge", "try", "Paris lies on the Seine.", "Paris lies on the Seine.").out
    assert "request: none, the judge works in this process" in shown
    assert "verdict: yes, probability 0.9" in shown
    refused = assay("judge", "try", "a", "b", "-c", config)
    assert refused.code == 2
    assert "start it with `assay judge start`" in refused.err
    assert "cannot be read as text" in assay("judge", "try", "@/no/such/file", "b").err


def test_the_compose_file_gets_the_flags_of_a_profile(assay: Assay) -> None:
    lines = assay("judge", "env", "minicheck-7b").out.splitlines()

    assert lines[0] == "JUDGE_MODEL=bespokelabs/Bespoke-MiniCheck-7B"
    assert "JUDGE_MAX_MODEL_LEN=32768" in lines
    assert lines[-1] == "JUDGE_EXTRA_ARGS='--trust-remote-code --enable-prefix-caching'"


def test_a_profile_that_no_server_serves_has_no_flags(assay: Assay) -> None:
    assert "assay run SOURCE --judge factcg" in assay("judge", "env", "factcg").err


def test_a_judge_is_started_with_the_flags_of_its_profile(assay: Assay, config: str) -> None:
    started = assay("judge", "start", "-c", config, "--profile", "lettucedetect", "--json")

    assert json.loads(started.out)["model"] == "tiny"
    record = (Path(os.environ["ASSAY_HOME"]) / "judge").rglob("*")
    assert any("--runner" in path.read_text(errors="replace") for path in record if path.is_file())


def test_without_a_gpu_llama_cpp_is_installed(assay: Assay, tmp_path: Path) -> None:
    shown = assay("judge", "install", str(tmp_path / "environment"), "--cpu", "--dry-run")
    assert shown.code == 0
    assert "llama.cpp: xllamacpp 20" in shown.out
    assert "about 34 MB to download" in shown.out
    assert not (tmp_path / "environment").exists()


def test_install_says_what_it_would_download(assay: Assay, tmp_path: Path) -> None:
    shown = assay("judge", "install", str(tmp_path / "environment"), "--no-gpu-check", "--dry-run")
    assert shown.code == 0
    assert "of pinned versions and verified against their hashes" in shown.out
    assert "about 4 GB to download" in shown.out
    assert not (tmp_path / "environment").exists()


def test_install_without_a_gpu_is_refused(assay: Assay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    refused = assay("judge", "install", str(tmp_path / "environment"))
    assert refused.code == 2
    assert "no NVIDIA GPU was found" in refused.err
