"""`assay compare`: the exit codes of a gate, the refusal, and the files it writes."""

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.deployments.cli.conftest import Outcome
from tests.tasks import compared

Assay = Callable[..., Outcome]


@pytest.fixture
def runs(tmp_path: Path) -> Sequence[str]:
    """A good run, a poor one, and a good one with another judge."""
    judge = {"backend": "server", "model": "other", "revision": "", "note": "", "language_model": True}
    good, poor = (compared.write_run(tmp_path / name, level) for name, level in (("good", 0.8), ("poor", 0.2)))
    return [str(good), str(poor), str(compared.write_run(tmp_path / "other", 0.8, judge=judge))]


@pytest.fixture
def gate(tmp_path: Path) -> Callable[[str], str]:
    """Write a gate file."""

    def write(text: str) -> str:
        path = tmp_path / "gate.toml"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


Write = Callable[[str], str]


@pytest.mark.parametrize(("width", "cells"), [(80, 7), (120, 8), (160, 8)])
def test_the_terminal_shows_scores_and_verdicts(
    assay: Assay, runs: Sequence[str], monkeypatch: pytest.MonkeyPatch, width: int, cells: int
) -> None:
    monkeypatch.setattr("deployments.cli.compare.stdout._width", width)
    done = assay("compare", runs[0], runs[1])
    assert done.code == 0
    lines = {line.split()[0]: line for line in reversed(done.out.splitlines()) if line.strip()}
    assert lines["faithfulness"].split()[1:4] == ["0.849", "0.249", "-0.600"]
    assert len(lines["faithfulness"].replace(" to ", "-").split()) == cells
    assert lines["faithfulness"].rstrip().endswith("worse")
    assert lines["nv_accuracy"].rstrip().endswith("not compared" if width > 80 else "-")
    laid_out = [
        line for line in done.out.splitlines() if "/" not in line and ": " not in line
    ]  # sentences wrap by themselves
    assert max(map(len, laid_out)) <= width
    assert "2 metrics worse, 1 not compared" in done.out
    assert "↓ lower is better" in " ".join(done.out.split())
    assert "\x1b[" not in done.out


def test_the_rows_that_changed_most_are_named(assay: Assay, runs: Sequence[str]) -> None:
    shown = assay("compare", runs[0], runs[1], "--top", "1").out.splitlines()
    [place] = [i for i, line in enumerate(shown) if line == "Rows that changed most"]
    assert shown[place + 2].split()[:3] == ["row-00", "faithfulness", "0.800→0.200,"]
    assert "Rows that changed most" not in assay("compare", runs[0], runs[1], "--top", "0").out


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("regression = { max_drop = 0.7 }", (0, "gate passed")),
        ("regression = { max_drop = 0.02 }", (10, "gate failed")),
        ("regression = { max_drop = 0.02 }\nmin_rows = 99", (11, "gate inconclusive")),
        ('regression = { max_drop = 0.02 }\nmin_rows = 99\ninconclusive = "failed"', (10, "gate failed")),
    ],
)
def test_each_outcome_has_its_exit_code(
    assay: Assay, runs: Sequence[str], gate: Write, text: str, outcome: tuple[int, str]
) -> None:
    done = assay("compare", runs[0], runs[1], "--gate", gate(text))
    assert (done.code, done.out.splitlines()[-1]) == outcome


def test_the_codes_are_those_of_the_process(runs: Sequence[str], gate: Write) -> None:
    program = str(Path(sys.executable).with_name("assay"))
    file = gate("regression = { max_drop = 0.02 }")
    for run, code, words in ((runs[1], 10, "gate failed"), (runs[2], 12, "not comparable")):
        done = subprocess.run(
            [program, "compare", runs[0], run, "--gate", file], capture_output=True, text=True, check=False
        )
        assert (done.returncode, words in done.stdout + done.stderr) == (code, True)
        assert "Traceback" not in done.stderr


def test_runs_that_are_not_alike_are_refused_and_shown(assay: Assay, runs: Sequence[str], gate: Write) -> None:
    file = gate("regression = { max_drop = 0.08 }")
    refused = assay("compare", runs[0], runs[2], "--gate", file)
    assert (refused.code, refused.out) == (12, "")
    assert "judge model: linear in A, other in B" in refused.err
    assert "--allow-different" in refused.err
    shown = assay("compare", runs[0], runs[2])
    assert shown.code == 0
    assert shown.out.startswith("NOT LIKE FOR LIKE")
    allowed = assay("compare", runs[0], runs[2], "--gate", file, "--allow-different")
    assert allowed.code == 0
    assert allowed.out.startswith("NOT LIKE FOR LIKE")


def test_gate_can_check_one_run(assay: Assay, runs: Sequence[str], gate: Write) -> None:
    file = gate('absolute = ["faithfulness.mean >= 0.5"]')
    assert [assay("compare", run, "--gate", file).code for run in runs[:2]] == [0, 10]
    assert assay("compare", runs[0]).code == 2


def test_a_run_without_a_baseline_is_checked_by_the_other_rules(
    assay: Assay, runs: Sequence[str], gate: Write, tmp_path: Path
) -> None:
    good, poor, _ = runs
    file = gate('absolute = ["faithfulness >= 0.5"]\n[regression]\nmax_drop = 0.02\n[coverage]\npaired_at_least = 0.9')
    assert "--without-baseline leaves such rules out" in " ".join(assay("compare", good, "--gate", file).err.split())
    markdown, junit = tmp_path / "c.md", tmp_path / "c.xml"
    options = ("--gate", file, "--without-baseline", "--markdown", str(markdown), "--junit", str(junit))
    done = assay("compare", good, *options)
    assert done.code == 0
    for shown in (done.out, markdown.read_text(encoding="utf-8"), junit.read_text(encoding="utf-8")):
        assert "There is no baseline: the rules that compare with one are left out." in " ".join(shown.split())
    assert assay("compare", poor, *options).code == 10
    both = assay("compare", good, poor, *options)
    assert (both.code, "leave out the option or the baseline" in " ".join(both.err.split())) == (2, True)


def test_every_output_format_is_written(assay: Assay, runs: Sequence[str], gate: Write, tmp_path: Path) -> None:
    files = {option: tmp_path / "out" / f"x.{option}" for option in ("markdown", "html", "junit")}
    options = [part for option, path in files.items() for part in (f"--{option}", str(path))]
    file = gate("regression = { max_drop = 0.02 }\ncoverage = { failed_at_most = 0.01 }")
    done = assay("compare", runs[0], runs[1], "--gate", file, "--json", "--top", "1", *options)
    assert done.code == 10
    content = json.loads(done.out)
    assert content["gate"]["outcome"] == "failed"
    assert len(content["metrics"][0]["difference"]["most_changed"]) == 1
    assert files["markdown"].read_text(encoding="utf-8").startswith("## Comparison of two runs")
    assert files["html"].read_text(encoding="utf-8").lstrip().startswith("<!doctype html>")
    root = ET.fromstring(files["junit"].read_bytes())
    assert (root.get("tests"), root.get("failures")) == ("5", "2")
    assert done.err.count("wrote ") == 3


def test_every_output_format_says_that_a_judge_is_not_trusted(
    assay: Assay, runs: Sequence[str], gate: Write, tmp_path: Path
) -> None:
    files = {option: tmp_path / "out" / f"x.{option}" for option in ("markdown", "html", "junit")}
    options = [part for option, path in files.items() for part in (f"--{option}", str(path))]
    file = gate('absolute = ["faithfulness >= 0.5"]\n[judge]\nmin_agreement = 0.6')
    done = assay("compare", runs[0], runs[0], "--gate", file, *options)
    assert (done.code, done.out.splitlines()[-1]) == (11, "gate inconclusive")
    content = json.loads(assay("compare", runs[0], runs[0], "--gate", file, "--json").out)
    [judge, rule] = content["gate"]["checks"]
    assert (judge["kind"], judge["metric"], judge["outcome"]) == ("judge", "faithfulness", "inconclusive")
    assert (rule["kind"], rule["outcome"]) == ("absolute", "inconclusive")
    case = ET.fromstring(files["junit"].read_bytes()).find(".//testcase[@classname='gate.judge']/skipped")
    assert case is not None
    told = [done.out, judge["reason"], case.get("message"), *(path.read_text("utf-8") for path in files.values())]
    for text in told:
        words = "the agreement of the judge with people was never measured, wanted at least 0.6 over at least 100"
        assert words in str(text).replace("&#39;", "'")
        assert "assay calibrate LABELS --label COLUMN --metric faithfulness" in str(text)


def test_seed_and_groups_are_printed(assay: Assay, runs: Sequence[str]) -> None:
    one, two = (assay("compare", *runs[:2], "--json", "--seed", "5", "--by", "topic").out for _ in range(2))
    assert one == two
    content = json.loads(one)
    assert (content["seed"], content["by"]) == (5, "topic")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--junit", "x.xml"), "name a gate file with --gate"),
        (("--by", "nothing"), "there is no column 'nothing'"),
        (("--match", "response"), "cannot be matched by response"),
        (("--gate", "missing.toml"), "there is no gate file"),
    ],
)
def test_impossible_requests_end_with_a_message(
    assay: Assay, runs: Sequence[str], options: Sequence[str], message: str
) -> None:
    done = assay("compare", runs[0], runs[1], *options)
    assert done.code == 2
    assert message in " ".join(done.err.split())
    assert "Traceback" not in done.err


def test_a_page_of_one_run_is_refused(assay: Assay, runs: Sequence[str]) -> None:
    assert "name a second run folder" in assay("compare", runs[0], "--html", "x.html").err


def test_folder_without_a_run_has_its_exit_code(assay: Assay, runs: Sequence[str], tmp_path: Path) -> None:
    assert assay("compare", str(tmp_path / "nowhere"), runs[0]).code == 5


def test_slices_are_columns_that_can_be_repeated(assay: Assay, runs: Sequence[str], gate: Write) -> None:
    assert assay("compare", *runs[:2], "--slice", "topic,user_input", "--slice", "topic").code == 0
    for options in (("--slice", "topic,streets"), ("--slice", "streets", "--slice", "topic")):
        assert "there is no column 'streets'" in assay("compare", *runs[:2], *options).err
    file = gate('absolute = ["faithfulness >= 0.01 for each topic"]\nmin_rows = 2\nsmall_slices = "skip"')
    done = assay("compare", runs[0], "--gate", file)
    assert (done.code, done.out.splitlines()[-1]) == (11, "gate inconclusive")
    assert "every slice of topic has too few rows" in done.out  # four rows are too few for an interval
    wrong = assay("compare", *runs[:2], "--slice", "topics")
    assert wrong.code == 2
    assert "rows cannot be sliced by topics: there is no column 'topics'" in wrong.err
