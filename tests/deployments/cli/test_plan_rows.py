"""`assay plan --detect`: how many rows a comparison needs."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.deployments.cli.conftest import Outcome
from tests.tasks import compared

Assay = Callable[..., Outcome]


@pytest.fixture
def run(tmp_path: Path) -> str:
    return str(compared.write_run(tmp_path / "run", 0.8))


def test_rows_are_found_from_one_run_and_from_two(assay: Assay, run: str, tmp_path: Path) -> None:
    other = str(compared.write_run(tmp_path / "other", 0.75))
    shown = assay("plan", "--detect", "0.05", "--from", run)
    assert shown.code == 0
    assert "give --from twice" in shown.out
    assert shown.out.index("rows to see it") < shown.out.index("faithfulness")
    both = json.loads(assay("plan", "--detect", "0.05", "--from", run, "--from", other, "--json").out)
    assert both["difference"] == 0.05
    by_metric = {metric["metric"]: metric for metric in both["metrics"]}
    assert by_metric["faithfulness"]["rows"] == compared.ROWS
    # All rows fell by the same: nothing varies, so the numbers are those of rows that are all alike.
    assert by_metric["faithfulness"]["needed"]["to_pass"] == by_metric["noise_sensitivity ↓"]["needed"]["to_pass"] == 59


@pytest.mark.parametrize("rows", [1, 19])
@pytest.mark.parametrize("pair", [False, True])
def test_few_rows_are_not_projected_from(assay: Assay, tmp_path: Path, rows: int, pair: bool) -> None:
    runs = [str(compared.write_run(tmp_path / name, 0.8, rows=rows)) for name in ("run", "other")[: 1 + pair]]
    done = assay("plan", "--detect", "0.05", *(part for run in runs for part in ("--from", run)))
    assert done.code == 2
    assert f"has {rows} scored row{'s' * (rows > 1)}, wanted at least 20 rows to see how much rows vary" in " ".join(
        done.err.split()
    )


def test_few_groups_are_not_projected_from(assay: Assay, run: str) -> None:
    done = assay("plan", "--detect", "0.05", "--from", run, "--by", "topic")
    assert done.code == 2
    assert "has 40 scored rows of 10 groups, wanted at least 20 groups" in " ".join(done.err.split())


def test_twenty_rows_are_enough(assay: Assay, tmp_path: Path) -> None:
    done = assay(
        "plan", "--detect", "0.05", "--from", str(compared.write_run(tmp_path / "run", 0.8, rows=20)), "--json"
    )
    assert all(metric["needed"]["to_see"] > 2 for metric in json.loads(done.out)["metrics"])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--detect", "0.05"), "a run to learn from"),
        (("--from", "RUN"), "need a difference above 0"),
        (("--detect", "0.05", "--from", "RUN", "--from", "RUN", "--from", "RUN"), "from one run or from two, got 3"),
        (("--detect", "0.05", "--from", "RUN", "--by", "topik"), "there is no column 'topik'"),
    ],
)
def test_what_is_missing_is_said(assay: Assay, run: str, options: tuple[str, ...], words: str) -> None:
    done = assay("plan", *(run if option == "RUN" else option for option in options))
    assert done.code != 0
    assert words in done.err
