"""`assay rerun` and `assay run --baseline` as users call them."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.deployments.cli.conftest import Outcome
from tests.run_records import record_json
from tests.tasks.reports import folders

Assay = Callable[..., Outcome]
ROWS = [
    {"id": f"r{n}", "user_input": "Where?", "response": f"In hall {n}.", "reference": f"Hall {n}."} for n in range(3)
]


def write(folder: Path, *rows: object) -> str:
    source = folder / "rows.jsonl"
    source.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return str(source)


@pytest.mark.prefect
@pytest.mark.models
@pytest.mark.usefixtures("prefect_stub")
def test_run_is_compared_with_its_baseline_and_rerun(assay: Assay, tmp_path: Path) -> None:
    source, monday, tuesday = write(tmp_path, *ROWS), str(tmp_path / "monday"), str(tmp_path / "tuesday")
    metrics = ("--metrics", "string_similarity")
    assert assay("run", source, *metrics, "--out", monday).code == 0
    write(tmp_path, ROWS[0], {**ROWS[1], "response": "Upstairs."}, ROWS[2], {**ROWS[2], "id": "r9"})
    done = assay("run", source, *metrics, "--out", tuesday, "--baseline", monday)
    assert done.code == 0, done.err
    again = str(tmp_path / "again")
    done = assay("rerun", monday, "--rows", "changed", "--out", again)
    assert done.code == 0, done.err
    scores = [(Path(run) / "scores.parquet").read_bytes() for run in (tuesday, again)]
    assert scores[0] == scores[1]
    preview = assay("rerun", monday, "--stage", "aggregation", "--dry-run")
    assert (preview.code, preview.err) == (0, "")
    assert preview.out.startswith("3 rows, of which 3 would be recomputed; reused rows per stage")
    assert re.search(r"^aggregation +0 of 3 ", preview.out, re.MULTILINE)
    nothing = assay("rerun", monday, "--json")
    assert (nothing.code, nothing.out) == (2, "")
    assert nothing.err.startswith("error: nothing to do: no cell of the run")


def test_a_folder_that_is_no_run_is_refused_before_anything_starts(assay: Assay, tmp_path: Path) -> None:
    outcome = assay("rerun", str(tmp_path))
    assert (outcome.code, outcome.out) == (5, "")
    assert "is not a run folder: it has no run.json" in outcome.err


def test_an_unknown_stage_is_a_message_with_the_nearest_name(assay: Assay, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps(record_json(folders.build_manifest(1, {}, ()))), encoding="utf-8")
    outcome = assay("rerun", str(tmp_path), "--stage", "verdict")
    assert (outcome.code, outcome.out) == (2, "")
    assert "there is no stage 'verdict' to recompute. Did you mean verdicts?" in outcome.err
    assert "samples" not in assay("rerun", str(tmp_path), "--stage", "qqq").err
    assert "`assay report RUN` writes the report again" in assay("rerun", str(tmp_path), "--stage", "reporting").err
