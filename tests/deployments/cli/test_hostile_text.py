"""No text of the data reaches a terminal or a log with its control characters."""

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from deployments.cli._support.console import Output
from deployments.cli._support.print_document import print_document
from metric_core.records import Score
from metric_core.stages import Stage
from tasks.documents.blocks import Block, Line, make_table, own
from tests.deployments.cli.conftest import Outcome
from tests.deployments.cli.test_run import ASSAY
from tests.tasks import sliced
from tests.tasks.reports import folders

Assay = Callable[..., Outcome]

HOSTILE = "\x1b]52;c;cHduZWQ=\x07\x1b[1A\x1b[2K\x9b8m\x7f\x00\x0c\u202edetrevni\u2066\u2028 h"
"""A text that writes the clipboard, rewrites the line above, conceals, and reverses a line."""
NAME = HOSTILE.replace("\x00", "")
"""The same as a name of a file or an argument, which hold no NUL."""
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
COLORS = re.compile("\x1b\\[[0-9;]*m|\r(?=\n)")
"""Colors of the command line, and line ends of the terminal's driver."""


def write_run(folder: Path, level: float) -> Path:
    """Write a run all of whose names and texts are hostile, with slices."""
    folder.mkdir(parents=True)
    column = f"column {HOSTILE}"
    samples = [
        {
            "row_id": f"{HOSTILE}{i}",
            "row_number": i + 1,
            "user_input": f"{HOSTILE} question {i}",
            "response": f"{HOSTILE} answer {level}",
            "retrieved_contexts": [HOSTILE],
            "reference": HOSTILE,
            "extras": json.dumps({column: f"{HOSTILE}{i % 3}", "label": i % 2}),
        }
        for i in range(40)
    ]
    metrics: dict[str, dict[str, Any]] = {
        "faithfulness": {"direction": "higher", "bounds": [0.0, 1.0]},
        f"metric {HOSTILE}": {"direction": "higher", "bounds": [0.0, 1.0]},
        f"style {HOSTILE}": {"direction": "neither", "bounds": None},
        "nv_accuracy": {"direction": "higher", "bounds": [0.0, 1.0], "language_model": True},
    }
    scores = {
        str(row["row_id"]): dict(
            zip(
                metrics,
                (
                    Score.scored(level + i % 3 * 0.05),
                    Score.scored(0.9 - level),
                    Score.labelled(f"{HOSTILE} {level}"),
                    Score.failed(f"the judge replied {HOSTILE}"),
                ),
                strict=True,
            )
        )
        for i, row in enumerate(samples)
    }
    facts = {
        "status": "completed",
        "source": f"{HOSTILE}.jsonl",
        "warnings": [f"row {HOSTILE} is odd"],
        "judge": {"backend": HOSTILE, "model": f"{HOSTILE} {level}", "note": HOSTILE},
        "config": {"slices": [column]},
    }
    folders.write_run(folder, scores, {Stage.SAMPLES: samples}, metrics, facts)
    sliced.add_slices(folder, [column])
    return folder


def raw(told: str) -> list[str]:
    return [told[max(0, found.start() - 40) : found.end() + 10] for found in RAW.finditer(told)]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("runs")
    return str(write_run(folder / "a", 0.7)), str(write_run(folder / f"b {NAME}", 0.2))


VERBS = {
    "compare": ("compare", "{a}", "{b}"),
    "compare --json": ("compare", "{a}", "{b}", "--json"),
    "compare by a column": ("compare", "{a}", "{b}", "--match", "user_input", "--slice", f"column {HOSTILE}"),
    "compare by an unknown column": ("compare", "{a}", "{b}", "--by", f"x{NAME}"),
    "gate": ("compare", "{a}", "{b}", "--gate", "{gate}"),
    "report": ("report", "{b}", "--out", "{out}"),
    "export": ("export", "{b}", "--out", "{out}.csv"),
    "questions": ("questions", "{a}/stages/samples.parquet", "--out", "{out}.jsonl"),
    "label": ("label", "{b}", "--metric", "faithfulness", "--budget", "5", "--ask", HOSTILE, "--out", "{out}.html"),
    "accept": ("accept", "{b}", "--name", "handbook"),
    "rerun": ("rerun", "{b}", "--dry-run"),
    "history": ("history", "--rebuild", "{b}"),
    "doctor": ("doctor", "{b}"),
    "plan by runs": ("plan", "--detect", "0.1", "--from", "{a}", "--from", "{b}"),
    "an unknown verb": (f"verb {NAME}",),
    "an invalid value": ("run", "{a}", "--limit", NAME),
    "an unknown file": ("run", f"{NAME}.jsonl"),
    "an unknown metric": ("run", "{a}", "--metrics", f"faithful{NAME}"),
    "calibrate": ("calibrate", "{a}", "--run", "{a}", "--label", "label", "--metric", "faithfulness"),
}


@pytest.mark.parametrize(("name", "log_format"), [*((name, "text") for name in VERBS), ("an unknown metric", "json")])
def test_verbs_print_no_control_characters(
    name: str, log_format: str, assay: Assay, runs: tuple[str, str], request: pytest.FixtureRequest
) -> None:
    tmp_path: Path = request.getfixturevalue("tmp_path")
    monkeypatch: pytest.MonkeyPatch = request.getfixturevalue("monkeypatch")
    gate = tmp_path / "gate.toml"
    gate.write_text("absolute = ['faithfulness.mean >= 0.9']\n[regression]\nmax_drop = 0.01\n", encoding="utf-8")
    monkeypatch.setattr(os, "environ", os.environ.copy())  # the format of logs is set for other processes, too
    monkeypatch.setenv("ASSAY_LOG_FORMAT", log_format)
    places = {"a": runs[0], "b": runs[1], "gate": str(gate), "out": str(tmp_path / f"o {NAME}")}
    done = assay(*(argument.format_map(places) for argument in VERBS[name]))
    assert done.out + done.err
    assert done.code != 1, done.err
    assert raw(done.out + done.err) == []


def show(*command: str) -> str:
    """Return what a command writes to a terminal."""
    main, other = pty.openpty()
    process = subprocess.Popen(command, stdin=other, stdout=other, stderr=other, env={**os.environ, "TERM": "xterm"})
    os.close(other)
    told = b""
    try:
        while chunk := os.read(main, 65536):
            told += chunk
    except OSError:  # Linux reports the end of a terminal as an error
        pass
    finally:
        os.close(main)
    process.wait()
    return told.decode()


@pytest.mark.parametrize("verb", ["compare", "export", "metrics"])
def test_a_terminal_gets_colors_and_no_control_characters_of_the_data(verb: str, runs: tuple[str, str]) -> None:
    arguments = {"compare": runs, "export": runs[:1], "metrics": (f"faithful{NAME}",)}
    told = show(str(ASSAY), verb, *arguments[verb])
    assert re.search(r"\\(u00|x)1b\]52;c;", told)
    assert raw(COLORS.sub("", told)) == []
    assert ("\x1b[" in told) == (verb != "export")


def test_an_export_for_a_program_has_the_data_as_it_is(runs: tuple[str, str]) -> None:
    done = subprocess.run([ASSAY, "export", runs[0]], capture_output=True, check=True)
    assert f"{HOSTILE}0".encode() in done.stdout


@pytest.mark.prefect
@pytest.mark.models
@pytest.mark.usefixtures("prefect_stub")
def test_a_run_of_hostile_data_prints_no_control_characters(assay: Assay, tmp_path: Path) -> None:
    data = tmp_path / f"data {NAME}.jsonl"
    rows = [
        {
            "id": f"{HOSTILE}{i}",
            "user_input": f"{HOSTILE} where is {i}?",
            "response": f"It is in Delft. {HOSTILE}",
            "retrieved_contexts": ["It is in Delft."],
            "topic": f"{HOSTILE}{i % 2}",
            "label": i % 2,
        }
        for i in range(12)
    ]
    data.write_text("".join(json.dumps(row) + "\n" for row in [*rows, rows[0]]), encoding="utf-8")
    options, skip = ("--metrics", "faithfulness", "--out", str(tmp_path / "run")), ("--on-bad-row", "skip")
    outcomes = [
        assay(*arguments)
        for arguments in (
            ("doctor", str(data)),
            ("plan", str(data), "--metrics", "faithfulness"),
            ("run", str(data), *options),
            ("run", str(data), *options, *skip, "--slice", "topic", "--verbose"),
            ("calibrate", str(data), "--label", "label", "--metric", "faithfulness", *skip, "--no-keep"),
        )
    ]
    for done in outcomes:
        assert done.code in {0, 3, 7}, done.err
        assert raw(done.out + done.err) == []
    assert outcomes[3].code == 0
    assert "\\u001b]52" in "".join(done.out + done.err for done in outcomes)


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_a_log_record_has_no_control_characters(log_format: str) -> None:
    program = (
        "import logging\n"
        f"from tasks.runtime.log_format import set_log_format; set_log_format({log_format!r})\n"
        "import rag_assay.prefect_flows\n"
        f"text = {HOSTILE!r}\n"
        "try:\n    raise ValueError(text)\n"
        "except ValueError:\n    logging.getLogger('tasks').exception('row %s', text)\n"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_LOGGING")}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert "row \\u001b]52" in done.stderr if log_format == "text" else json.loads(done.stderr)
    assert raw(done.stderr) == []


def test_a_line_break_in_a_name_begins_no_line(capsys: pytest.CaptureFixture[str]) -> None:
    name = "a\nerror: pay here"
    blocks: list[Block] = [Line((own("4 rows of "), name)), make_table(["evaluation", "runs"], [[name, "3"]])]
    print_document(Output(width=80), blocks)
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line.startswith("error")] == []
    assert sum(r"a\nerror: pay here" in line for line in lines) == 2
