"""Output of the command line under constraints: narrow terminals, other encodings, full disks."""

import errno
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rich.console import Console

from deployments.cli._support.cli_errors import describe_error
from deployments.cli._support.console import Output, use_log_format
from deployments.cli._support.print_document import print_table
from deployments.cli.main import OUTPUT_CLOSED
from tasks.documents.run.summary_rows import summary_table
from tasks.runtime.terminal_text import guard_streams
from tests.deployments.cli.conftest import Outcome
from tests.run_records import distribution_json, make_summary
from tests.tasks import compared

Assay = Callable[..., Outcome]

METRIC = {
    "metric": "noise_sensitivity(mode=irrelevant)",
    "direction": "lower",
    "scored": 19,
    "undefined": 1,
    "failed": 0,
    "scales": {},
    "distribution": distribution_json(0.39, interval={"low": 0.232, "high": 0.583}),
    "categories": {},
    "reasons": {},
}


def _printed(width: int) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    print_table(console, summary_table(make_summary(metrics=[METRIC])))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [20, 40, 60, 80, 120])
def test_no_number_of_a_summary_is_cut_off(width: int) -> None:
    words = " ".join(_printed(width).split())
    for shown in ("0.390", "0.232 to 0.583", "19", "1"):
        assert shown in words
    assert "…" not in words
    assert "noise_sensitivity" in words


def test_a_terminal_that_has_room_shows_a_table() -> None:
    lines = _printed(80).splitlines()
    assert lines[0].split() == ["metric", "mean", "95", "%", "interval", "scored", "undefined"]
    assert [line.rstrip() for line in _printed(40).splitlines()[:2]] == [
        "noise_sensitivity(mode=irrelevant) ↓",
        "  mean 0.390, 95 % interval 0.232 to",
    ]


def test_a_narrow_terminal_shows_every_number_of_a_comparison(
    assay: Assay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("deployments.cli.compare.stdout._width", 40)
    runs = [str(compared.write_run(tmp_path / name, level)) for name, level in (("a", 0.2), ("b", 0.8))]
    told = assay("compare", *runs).out
    assert "…" not in told
    assert "faithfulness\n  A 0.249, B 0.849, B - A +0.600" in told


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252"])
def test_characters_that_a_stream_lacks_are_escaped(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding=encoding))
    guard_streams()
    console = Output(width=80)
    console.print("less is better: ↓")
    console.print_json(json.dumps({"text": "é ↓ 東"}))
    sys.stdout.flush()
    first, _, rest = written.getvalue().decode(encoding).partition("\n")
    assert first == "less is better: \\u2193"
    assert json.loads(rest) == {"text": "é ↓ 東"}


def test_json_keeps_characters_that_the_stream_has(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="utf-8"))
    Output(width=80).print_json('{"text": "\\u6771"}')
    sys.stdout.flush()
    assert "東" in written.getvalue().decode()


def test_full_disk_is_a_message_without_a_traceback() -> None:
    full = OSError(errno.ENOSPC, "No space left on device")
    assert describe_error(full) == "no space for the output of the command: No space left on device"
    assert describe_error(OSError(errno.ECONNREFUSED, "Connection refused")) is None


@pytest.fixture
def _own_environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(os, "environ", dict(os.environ))
    yield
    use_log_format("text")


@pytest.mark.usefixtures("_own_environment")
@pytest.mark.parametrize("way", ["option", "file", "variable"])
def test_errors_and_warnings_are_json_where_logs_are(assay: Assay, tmp_path: Path, way: str) -> None:
    config = tmp_path / "c.toml"
    config.write_text('log_format = "json"\n' if way == "file" else "", encoding="utf-8")
    flag = ("--log-format", "json") if way == "option" else ()
    if way == "variable":
        os.environ["ASSAY_LOG_FORMAT"] = "json"
    done = assay("plan", "--config", str(config), str(tmp_path / "absent.jsonl"), *flag)
    records = [json.loads(line) for line in done.err.splitlines()]
    assert done.code == 3
    assert [(record["name"], record["levelname"]) for record in records] == [("assay", "ERROR")]
    assert "absent.jsonl" in records[0]["msg"]
    assert os.environ["PREFECT_LOGGING_HANDLERS_CONSOLE_FORMATTER"] == "json"


@pytest.mark.usefixtures("_own_environment")
def test_errors_are_text_by_default(assay: Assay, tmp_path: Path) -> None:
    done = assay("plan", str(tmp_path / "absent.jsonl"))
    assert done.err.startswith("error: ")
    assert "PREFECT_LOGGING_HANDLERS_CONSOLE_FORMATTER" not in os.environ


@pytest.mark.usefixtures("_own_environment")
def test_a_misspelled_configuration_is_reported_as_json_by_the_variable(assay: Assay, tmp_path: Path) -> None:
    os.environ["ASSAY_LOG_FORMAT"] = "json"
    (tmp_path / "c.toml").write_text("metrcs = 1", encoding="utf-8")
    assert json.loads(assay("plan", str(tmp_path / "c.toml")).err)["levelname"] == "ERROR"


@pytest.mark.parametrize("argument", ["metrics", "--help"])
def test_output_that_nobody_reads_any_more(argument: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-c", "from deployments.cli.main import main; main()", argument]
    try:
        ended = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    finally:
        os.close(writer)
    assert (ended.returncode, ended.stderr) == (OUTPUT_CLOSED, "")
