"""A matrix is read as one configuration per combination of its axes."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from deployments.many_runs.matrix import read_axes
from metric_core.errors import ConfigError
from tests.structure.house import ROOT


def write(folder: Path, text: str) -> Path:
    path = folder / "matrix.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_the_product_of_the_axes_is_named_by_its_values(tmp_path: Path) -> None:
    path = write(tmp_path, 'source = "{search}/{k}.jsonl"\n[axes]\nsearch = ["bm25", "a b/c"]\nk = [2, 0.5]\n')
    found = read_axes(path)
    assert [*found] == ["bm25-2", "bm25-0.5", "a_b_c-2", "a_b_c-0.5"]
    assert found["a_b_c-0.5"] == {"search": "a b/c", "k": 0.5}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('source = "a.jsonl"', r"needs a table \[axes\]"),
        ('source = "{k}.jsonl"\n[axes]\nk = 3', "the axis k of .* must be a list"),
        ('source = "{k}.jsonl"\n[axes]\nk = [1]', "have one combination"),
        ('source = "a.jsonl"\n[axes]\nk = [1, 2]', "no option of .* holds {k}"),
        ('source = "{k}.jsonl"\n[axes]\nk = ["a b", "a/b"]', "two combinations .* have the name a_b"),
    ],
)
def test_mistakes_are_named(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        read_axes(write(tmp_path, text))


@pytest.mark.served
def test_the_runs_share_answers_and_are_compared(server_home: Path, tmp_path: Path) -> None:
    rows = (ROOT / "examples" / "handbook.jsonl").read_text(encoding="utf-8").splitlines()[:8]
    (tmp_path / "full.jsonl").write_text("\n".join(rows), encoding="utf-8")
    cut = [json.loads(row) for row in rows]
    short = [row | {"response": row["response"][:40]} if number < 2 else row for number, row in enumerate(cut)]
    (tmp_path / "short.jsonl").write_text("\n".join(map(json.dumps, short)), encoding="utf-8")
    text = 'source = "{answers}.jsonl"\nmetrics = ["faithfulness"]\n[axes]\nanswers = ["full", "short"]\n'
    own = {"ASSAY_CACHE": str(tmp_path / "answers.db"), "ASSAY_TABLES": str(tmp_path / "tables")}
    environment = os.environ | {"ASSAY_HOME": str(server_home), **own}  # other tests evaluate the same answers
    assay, matrix = (str(path) for path in (Path(sys.executable).with_name("assay"), write(tmp_path, text)))
    command = [assay, "run", "--matrix", matrix, "--out", "found"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "cannot tell the 2 runs apart" in done.stdout
    assert (tmp_path / "found" / "comparison.html").is_file()
    first, second = (
        json.loads((tmp_path / "found" / name / "run.json").read_text(encoding="utf-8"))["usage"]
        for name in ("full", "short")
    )
    assert first["stored"] == 0
    assert second["questions"] - second["stored"] <= first["questions"] / 2
