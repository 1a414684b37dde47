"""The patches in `docs/examples` still apply, and what each adds works: CONTRIBUTING names them as examples."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.structure.house import PACKAGES, ROOT, text_of

EXAMPLES = sorted((ROOT / "docs" / "examples").glob("*.patch"))
_ROW = re.compile(r"^\| an? [^|]+ \| (\d+) \|[^|]*\| \[[^]]+\]\(docs/examples/(\w+\.patch)\) \|$", re.MULTILINE)

VERBS = """
import json, sys
from rag_assay.__main__ import main
for arguments in json.loads(sys.argv[1]):
    sys.argv = ["assay", *arguments]
    try:
        main()
    except SystemExit as stop:
        if stop.code:
            raise
"""


def apply_patch(patch: Path, folder: Path, *options: str) -> None:
    # A folder above that is a repository would be taken for the root of the paths.
    environment = os.environ | {"GIT_CEILING_DIRECTORIES": str(folder.parent)}
    command = ["git", "apply", *options, str(patch)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{patch.name} does not apply; make it again:\n{done.stderr}"


def run_verbs(copy: Path, home: Path, *calls: Sequence[str]) -> str:
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PREFECT_", "ASSAY_"))}
    environment |= {
        "ASSAY_HOME": str(home),
        "PYTHONPATH": os.pathsep.join([str(copy / "deployments/public"), str(copy)]),
    }
    command = [sys.executable, "-c", VERBS, json.dumps(calls)]
    done = subprocess.run(command, cwd=copy.parent, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_contributing_names_each_example_and_counts_its_files() -> None:
    counts = {path.name: len(re.findall(r"^\+\+\+ b/", path.read_text(), re.MULTILINE)) for path in EXAMPLES}
    assert {name: int(count) for count, name in _ROW.findall(text_of(Path("CONTRIBUTING.md")))} == counts


@pytest.mark.models
@pytest.mark.prefect
def test_what_the_examples_add_works(server_home: Path, tmp_path: Path) -> None:
    copy, run = tmp_path / "copy", tmp_path / "run"
    for package in PACKAGES:  # with the compiled modules, which hold as long as the times of the files are kept
        shutil.copytree(ROOT / package, copy / package)
    for patch in EXAMPLES:
        apply_patch(patch, copy, "--check")
    for patch in EXAMPLES:
        apply_patch(patch, copy)

    data = tmp_path / "answers.jsonl"
    row = {
        "user_input": "When does the museum open?",
        "response": "The museum opens at nine. It closes at five.",
        "retrieved_contexts": ["The museum is open from nine to five."],
        "reference": "At nine.",
    }
    data.write_text(json.dumps(row))
    metrics = "brevity,faithfulness,metric_core.metrics.politeness:POLITENESS"
    options = ("--judge", "lenient", "--max-claims", "1", "--metrics-file", str(tmp_path / "assay.prom"))
    evaluation = ("run", str(data), "-m", metrics, *options, "--out", str(run))
    printed = run_verbs(copy, server_home, ("home",), ("metrics", "brevity"), evaluation)

    assert printed.splitlines()[0] == str(server_home)  # the verb
    assert "Two words would have sufficed" in printed  # the guide to the metric
    cells = {row["metric"]: row for row in pq.read_table(run / "scores.parquet").to_pylist()}
    assert cells["brevity"]["value"] == 2 / 9
    assert cells["faithfulness"]["value"] == 1  # by the judge that agrees with everything
    assert cells["politeness"]["reason"] == "needs a language-model judge"  # its question has a prompt
    tables = {stage: pq.read_table(run / "stages" / f"{stage}.parquet").to_pylist() for stage in ("lengths", "echoes")}
    assert tables["lengths"][0]["characters"] == len(str(row["response"]))
    assert tables["echoes"][0]["probability"] == 1
    claims = pq.read_table(run / "stages" / "claims.parquet").to_pylist()
    assert [claim["text"] for claim in claims] == ["The museum opens at nine."]  # the option
    assert "longest answer: 9 words" in printed  # the finding
    assert "Longest answers" in (run / "report.html").read_text()
    assert 'assay_longest_answer_words{deployment="",index=""} 9.0' in (tmp_path / "assay.prom").read_text()
