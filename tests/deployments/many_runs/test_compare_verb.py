"""`assay compare` with several runs: which may be the best, and the files that it writes."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.deployments.cli.conftest import Outcome
from tests.deployments.cli.conftest import assay as assay  # noqa: PLC0414 a fixture here too
from tests.tasks import compared

Assay = Callable[..., Outcome]


@pytest.fixture
def runs(tmp_path: Path) -> Sequence[str]:
    return [str(compared.write_run(tmp_path / f"at-{level}", level)) for level in (0.2, 0.8, 0.79)]


def test_three_runs_are_compared_together_and_two_as_before(assay: Assay, runs: Sequence[str], tmp_path: Path) -> None:
    done = assay("compare", *runs, "--metric", "faithfulness")
    assert done.code == 0, done.err
    assert "faithfulness: at-0.8 is the best of 3" in done.out
    assert "If all 3 runs were equally good" in " ".join(done.out.split())
    assert "2 metrics better" in assay("compare", *runs[:2]).out
    page = tmp_path / "many.html"
    page.write_text("earlier", encoding="utf-8")
    done = assay("compare", *runs, str(page), "--html", str(page), "--markdown", str(tmp_path / "many.md"), "--json")
    assert [run["name"] for run in json.loads(done.out)["runs"]] == ["at-0.2", "at-0.8", "at-0.79"]
    assert "<h1>3 runs</h1>" in page.read_text(encoding="utf-8")
    assert (tmp_path / "many.md").read_text(encoding="utf-8").startswith("## Comparison of 3 runs")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--gate", "gate.toml"), 2, "a gate checks one run"),
        (("--metric", "recall"), 2, "cannot be ranked by 'recall'"),
        (("no-such-folder",), 5, "no-such-folder"),
        (("--jsom",), 2, "No such option: --jsom"),
    ],
)
def test_mistakes_end_with_the_codes_of_a_comparison(
    assay: Assay, runs: Sequence[str], arguments: Sequence[str], code: int, message: str
) -> None:
    done = assay("compare", *runs, *arguments)
    assert (done.code, message in done.err) == (code, True), done.err


def test_files_are_no_runs(assay: Assay, runs: Sequence[str], tmp_path: Path) -> None:
    for name in ("a.html", "b.html"):
        (tmp_path / name).write_text("", encoding="utf-8")
    done = assay("compare", runs[0], str(tmp_path / "a.html"), str(tmp_path / "b.html"))
    assert (done.code, "there is 1 run folder" in done.err) == (2, True)
