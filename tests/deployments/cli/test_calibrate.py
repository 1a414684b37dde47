"""`assay calibrate` as users call it, on the example's labels."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tasks.calibration.calibration_files import save_latest
from tests.deployments.cli.conftest import Outcome
from tests.tasks import compared
from tests.tasks.calibration.test_calibration_files import make_calibration

Assay = Callable[..., Outcome]
LABELS = Path(__file__).parents[3] / "examples" / "handbook_labels.jsonl"


@pytest.mark.prefect
@pytest.mark.models
@pytest.mark.usefixtures("prefect_stub")
def test_calibrating_the_example_prints_a_summary(assay: Assay, tmp_path: Path) -> None:
    options = ("--label", "faithful", "--by", "pair", "--no-keep", "--out", str(tmp_path / "run"))
    done = assay("calibrate", str(LABELS), *options)
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert lines[0] == f"faithfulness compared with 'faithful' of {LABELS}"
    assert "66 of 69 rows compared (48 yes, 18 no); 3 unlabelled" in lines
    [auroc] = [line.split() for line in lines if line.startswith("AUROC")]
    low, value, high = float(auroc[2]), float(auroc[1]), float(auroc[4])
    assert 0.5 < low < value < high
    assert any(line.startswith("calibration error") and "at most 0." in line for line in lines)
    assert not any(line.startswith("saved: ") for line in lines)
    written = json.loads((tmp_path / "run" / "calibration.json").read_text(encoding="utf-8"))
    assert (written["metric"], written["counts"]["compared"]) == ("faithfulness", 66)
    assert (tmp_path / "run" / "report.html").is_file()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--label", "faithful", "--range", "1;5"), "--range must be the lowest and the highest grade, such as 1,5"),
        (("--label", "faithful", "--range", "5,1"), "--range must have the lowest grade first"),
        ((), "--label"),
        (("--label", "faithful", "--metrics", "faithfulness"), "--metric"),
    ],
)
def test_a_mistake_is_a_message_before_anything_starts(assay: Assay, options: tuple[str, ...], words: str) -> None:
    outcome = assay("calibrate", str(LABELS), *options)
    assert (outcome.code, outcome.out) == (2, "")
    assert words in outcome.err


@pytest.mark.prefect
@pytest.mark.usefixtures("prefect_stub")
def test_unusable_labels_end_with_one_message(assay: Assay, tmp_path: Path) -> None:
    done = assay("calibrate", str(LABELS), "--label", "fathful", "--out", str(tmp_path / "run"))
    assert (done.code, done.out) == (3, "")
    assert done.err == "error: the data has no column 'fathful'. Did you mean 'faithful'?\n"


def test_a_file_of_labels_is_not_ignored_for_want_of_a_column(assay: Assay, tmp_path: Path) -> None:
    run = compared.write_run(tmp_path / "run", 0.5)
    done = assay("calibrate", str(LABELS), "--run", str(run))
    assert (done.code, "--label names the column" in done.err) == (2, True)
    done = assay("calibrate", "--run", str(run), "--metric", "faithfulness")
    assert (done.code, "no labels of faithfulness are stored" in done.err) == (3, True)


def test_a_sample_never_replaces_a_file_that_people_may_have_filled_in(assay: Assay, tmp_path: Path) -> None:
    run, file = compared.write_run(tmp_path / "run", 0.5), tmp_path / "to_label.csv"
    options = ("label", str(run), "--metric", "faithfulness", "--budget", "5", "--out", str(file))
    assert assay(*options).code == 0
    filled = file.read_text(encoding="utf-8").replace("\n", "\n1", 1)
    file.write_text(filled, encoding="utf-8")
    again = assay(*options)
    assert (again.code, "already exists, and may hold labels" in again.err) == (2, True)
    assert file.read_text(encoding="utf-8") == filled


def test_saved_calibrations_are_listed_without_naming_labels(
    assay: Assay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_HOME", str(tmp_path))
    assert assay("calibrate", "--list").out == "no calibration is saved\n"
    path = save_latest(make_calibration())
    done = assay("calibrate", "--list")
    assert (done.code, done.out.splitlines()[0].endswith(str(path))) == (0, True)
