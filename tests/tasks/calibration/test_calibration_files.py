"""Kept calibrations: written whole, read back, and refused where they are damaged or of another judge."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from metric_core.errors import ConfigError
from tasks.calibration import calibration_files
from tasks.calibration.calibration_files import Calibration
from tasks.documents.calibration.calibration_text import agreement_lines, calibration_markdown, count_line, saved_line
from tasks.record.stored_figures import JudgeName
from tests.run_records import make_record

JUDGE = JudgeName(backend="server", model="org/judge 7B", revision="r1")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without calibrations."""
    monkeypatch.setenv("ASSAY_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def make_calibration(**changes: Any) -> Calibration:
    values = {
        "created": "2026-11-21T16:04:00+00:00",
        "identity": "ab" * 32,
        "judge": JUDGE,
        "metric": "factual_correctness(mode=recall)",
        "name": "factual_correctness",
        "parameters": {"mode": "recall"},
        "verdict": "binary",
        "source": "data/labels.jsonl",
        "data": "cd" * 32,
        "label": "correct",
        "scale": "binary",
        "counts": {"rows": 9, "unlabelled": 1, "undefined": 0, "failed": 2, "compared": 6, "positive": 4},
        "figures": {"kappa": {"value": 0.5, "low": 0.25, "high": 0.75}, "agreement": {"value": 0.125}},
        "map": {"slope": 0.5, "intercept": -0.25},
        "seed": 1,
    }
    return Calibration.model_validate({**values, **changes})


def test_a_kept_calibration_is_found_again_under_its_judge(home: Path) -> None:
    path = calibration_files.save_latest(make_calibration())
    assert path.parent.parent == home / "calibrations"
    assert path.parent.name == "server-org-judge-7B"
    assert calibration_files.load_latest() == [make_calibration()]


def test_looks_at_a_growing_sample_are_counted_once_each() -> None:
    calibration = make_calibration(sample="labels.jsonl, correct")
    where = (calibration.identity, calibration.metric, calibration.sample)
    assert calibration_files.count_looks(*where, "first") == 1
    for look, data in enumerate(("first", "second", "third"), start=1):
        assert calibration_files.count_looks(*where, data) == look
        calibration_files.save_latest(calibration.model_copy(update={"data": data, "look": look}))
    assert calibration_files.count_looks(*where, "second") == 2
    assert calibration_files.count_looks(*where[:2], "another sample", "fourth") == 1
    of_run = make_calibration(sample="run 1", data="a", look=4)
    assert calibration_files.count_looks(*where[:2], "run 1", "b", [of_run]) == 5
    assert "look 4 at these labels: limits hold over all looks" in count_line(of_run)


def test_a_figure_is_flat_on_disk() -> None:
    content = json.loads(calibration_files.save_latest(make_calibration()).read_text(encoding="utf-8"))
    assert content["figures"] == {
        "kappa": {"value": 0.5, "low": 0.25, "high": 0.75},
        "agreement": {"value": 0.125, "low": None, "high": None},
    }
    assert content["map"] == {"slope": 0.5, "intercept": -0.25}
    assert content["judge"] == {"backend": "server", "model": "org/judge 7B", "revision": "r1"}


@pytest.mark.parametrize("figure", [{"low": 0.25}, 0.5, {"value": "much"}])
def test_a_damaged_figure_is_an_error(figure: object) -> None:
    path = calibration_files.save_latest(make_calibration())
    content = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**content, "figures": {"kappa": figure}}), encoding="utf-8")
    with pytest.raises(ConfigError, match="cannot be used"):
        calibration_files.load_calibration(path)


def test_a_newer_one_of_the_same_judge_replaces_it_and_another_judge_s_stays() -> None:
    calibration_files.save_latest(make_calibration())
    calibration_files.save_latest(make_calibration(created="2026-11-22T16:04:00+00:00"))
    calibration_files.save_latest(make_calibration(identity="ef" * 32, created="2026-11-20T16:04:00+00:00"))
    assert [found.created[:10] for found in calibration_files.load_latest()] == ["2026-11-22", "2026-11-20"]


def make_counts(compared: int) -> dict[str, int]:
    return {"rows": compared, "unlabelled": 0, "undefined": 0, "failed": 0, "compared": compared, "positive": 1}


def test_one_of_fewer_labels_replaces_another_only_if_that_is_asked_for() -> None:
    many, few = (make_calibration(counts=make_counts(compared)) for compared in (66, 29))
    calibration_files.save_latest(many)
    calibration_files.save_latest(many)
    with pytest.raises(ConfigError, match=r"rests on 29 .*replace one .* rests on 66 rows .*--replace .*--no-keep"):
        calibration_files.save_latest(few)
    assert calibration_files.load_latest() == [many]
    calibration_files.save_latest(few, replace=True)
    assert calibration_files.load_latest() == [few]
    calibration_files.save_latest(make_calibration(metric="faithfulness", counts=make_counts(3)))


def test_a_replaced_calibration_stays_readable() -> None:
    numbers = (5, 6, 6, 7)
    for number in numbers:
        calibration_files.save_latest(make_calibration(counts=make_counts(number)))
    saved = calibration_files.load_saved()
    assert [(each.calibration.counts.compared, each.is_latest) for each in saved if each.is_latest] == [(7, True)]
    assert sorted(each.calibration.counts.compared for each in saved) == sorted(numbers)
    earlier = next(each for each in saved if not each.is_latest)
    assert calibration_files.load_calibration(earlier.path) == earlier.calibration
    assert saved_line(saved[0]).endswith(
        f"kappa 0.500 (0.250 to 0.750), 7 rows of labels.jsonl, 2026-11-21: {saved[0].path}"
    )
    assert "2026-11-21, replaced by a later one: " in saved_line(earlier)


def test_damaged_calibration_is_skipped_unless_it_is_named() -> None:
    path = calibration_files.save_latest(make_calibration())
    path.write_text("{", encoding="utf-8")
    assert calibration_files.load_latest() == []
    with pytest.raises(ConfigError, match="cannot be used; make it again with `assay calibrate`"):
        calibration_files.load_calibration(path)
    with pytest.raises(ConfigError, match="there is no calibration"):
        calibration_files.load_calibration(path.with_name("other.json"))
    path.write_text(json.dumps(make_calibration(format=2).model_dump(mode="json")), encoding="utf-8")
    with pytest.raises(ConfigError, match="has format 2, this rag-assay reads 1"):
        calibration_files.load_calibration(path)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"model": "other"}, None),
        ({"revision": "r2"}, "of revision r1, not r2"),
        ({}, "of other prompts, sampling, models or code"),
    ],
)
def test_why_a_calibration_does_not_hold(changes: dict[str, str], why: str | None) -> None:
    assert calibration_files.describe_mismatch(make_calibration(), replace(JUDGE, **changes)) == why


def test_a_run_tells_each_metric_s_agreement_and_which_have_none() -> None:
    entry = {
        "metrics": {"faithfulness": make_calibration().to_record("binary", applied=False).to_json()},
        "not_covered": ["a note"],
    }
    metrics: list[dict[str, Any]] = [{"key": key} for key in ("faithfulness", "a", "b")]
    assert agreement_lines(make_record({"calibration": entry, "metrics": metrics})) == [
        "faithfulness: kappa 0.500 (0.250 to 0.750), 6 rows of labels.jsonl, 2026-11-21",
        "not calibrated: a, b",
        "a note",
    ]
    more = [{"key": str(number)} for number in range(9)]
    many = agreement_lines(make_record({"calibration": entry, "metrics": metrics + more}))
    assert many[1] == "not calibrated: 11 others"


def test_a_calibration_as_markdown_has_its_counts_and_figures() -> None:
    assert count_line(make_calibration()) == "6 of 9 rows compared (4 yes, 2 no); 1 unlabelled, 2 failed"
    assert count_line(make_calibration(counts={**asdict(make_calibration().counts), "positive": None})).startswith(
        "6 of 9 rows compared;"
    )
    assert calibration_markdown(make_calibration()).splitlines()[-2:] == [
        "| Cohen's kappa | 0.500 | 0.250 to 0.750 |",
        "| agreement | 0.125 | no interval: too few rows or groups, or too similar ones |",
    ]
