"""Causes of changed scores, read from two run folders: anchors, rows with the same texts, fingerprints."""

import json
from pathlib import Path
from typing import Any

import pytest

from metric_core.statistics.attribution import Attribution, Cause
from tasks.comparison.score_causes import CauseFinder
from tasks.runs.finished_run import FinishedRun
from tasks.runs.judge_drift import ASKED_AGAIN
from tests.tasks import compared

JUDGE = {"backend": "server", "model": "big", "revision": "r1"}


def manifest_of(by: str, **more: Any) -> dict[str, Any]:
    """Return entries of run.json of a judge whose answers are determined by a digest."""
    identities = dict.fromkeys(("faithfulness", "noise_sensitivity", "nv_accuracy"), by)
    return {"judge": {**JUDGE, "model": by}, "calibration": {"metrics": {}, "identities": identities}, **more}


class Two:
    """A baseline, and a run of a system that answers in other words.

    Args:
        folder: Folder of both.
        level: Scores of the run; those of the baseline are 0.8 and more.
        judge: Judge of the run; that of the baseline is "big".
        answer: Response of the run.
    """

    def __init__(self, folder: Path, level: float, judge: str = "big", answer: str = "Ask in Dublin.") -> None:
        self.before, self.after = folder / "a", folder / "b"
        self.judge = judge
        compared.write_run(self.before, 0.8, **manifest_of("big"))
        compared.write_run(self.after, level, answer, **manifest_of(judge))

    def anchor(self, level: float, answer: str = "In Dublin.") -> "Two":
        """Add anchors, with scores of 0.8 and more in the baseline."""
        compared.write_run(self.before / "anchor", 0.8, **manifest_of("big"))
        compared.write_run(self.after / "anchor", level, answer, **manifest_of(self.judge))
        return self

    def ask_again(self, run: Path, change: float, *, told: str | None = None, log_e_value: float = 0.0) -> "Two":
        """Add what a run found by asking about 30 anchor rows again: their scores, and whether a judge was told."""
        scores = {f"anchor {row}": [0.8, 0.8 + change] for row in range(30)}
        judge = {"judge": "big", "told": told and {"since": told}, "log_e_value": log_e_value, "has_returned": False}
        manifest = json.loads((run / "run.json").read_text(encoding="utf-8"))
        manifest["anchor"] = {ASKED_AGAIN: {"judges": [judge], "scores": {"faithfulness": scores}}}
        (run / "run.json").write_text(json.dumps(manifest), encoding="utf-8")
        return self

    @property
    def finder(self) -> CauseFinder:
        return CauseFinder.from_runs(FinishedRun(self.before), FinishedRun(self.after))

    def find(self, metric: str = "faithfulness") -> Attribution:
        return self.finder.find(metric)


@pytest.mark.parametrize("metric", ["faithfulness", "noise_sensitivity"])
def test_scores_that_the_anchor_lost_too_are_the_judges(tmp_path: Path, metric: str) -> None:
    found = Two(tmp_path, 0.6, judge="small").anchor(0.6).find(metric)

    assert found.cause is Cause.JUDGE
    assert found.judge is not None
    assert found.judge.mean == pytest.approx(-0.2), "a change for the worse is negative whatever the direction"


def test_scores_that_the_anchor_kept_are_the_systems(tmp_path: Path) -> None:
    found = Two(tmp_path, 0.6).anchor(0.8).find()

    assert found.cause is Cause.SYSTEM
    assert found.sentence == (
        "The system changed: the judge has the same fingerprint and gives all 40 anchor rows the same scores, so the "
        "change is the system's"
    )


def test_rows_asked_again_show_the_judge_behind_cached_answers(tmp_path: Path) -> None:
    runs = Two(tmp_path, 0.6).anchor(0.8)
    found = runs.ask_again(runs.after, -0.2, told="2026-11-20").find()

    assert found.cause is Cause.JUDGE
    assert found.reason.startswith(
        "the judge big answers differently under the same name, and 30 of 30 anchor rows asked again have another "
        "score. Of the change of -0.200, -0.200"
    )


def test_a_judge_that_changed_without_moving_scores_leaves_the_system(tmp_path: Path) -> None:
    runs = Two(tmp_path, 0.6).anchor(0.8)

    assert runs.ask_again(runs.after, 0.0, told="2026-11-20").find().cause is Cause.SYSTEM


def test_a_judge_that_is_in_doubt_but_not_told_is_the_cause_by_its_rows(tmp_path: Path) -> None:
    runs = Two(tmp_path, 0.6).anchor(0.8)

    assert runs.ask_again(runs.after, -0.2, log_e_value=2.9).find().cause is Cause.SYSTEM
    found = runs.ask_again(runs.after, -0.2, log_e_value=3.0).find()
    assert found.cause is Cause.JUDGE
    assert found.reason.startswith("the judge has the same fingerprint, and 30 of 30 anchor rows asked again")


def test_a_judge_that_had_changed_before_the_baseline_is_no_cause(tmp_path: Path) -> None:
    runs = Two(tmp_path, 0.6).anchor(0.8)
    for run in (runs.before, runs.after):
        runs.ask_again(run, -0.2, told="2026-11-20", log_e_value=9.0)

    assert runs.find().cause is Cause.SYSTEM


def test_scores_that_the_anchor_lost_in_part_are_of_both(tmp_path: Path) -> None:
    assert Two(tmp_path, 0.2, judge="small").anchor(0.5).find().cause is Cause.BOTH


def test_rows_with_the_same_texts_are_an_anchor(tmp_path: Path) -> None:
    found = Two(tmp_path, 0.6, judge="small", answer="In Dublin.").find()

    assert found.cause is Cause.JUDGE
    assert "40 of 40 rows with the same texts have another score" in found.reason


def test_without_an_anchor_the_cause_is_unknown(tmp_path: Path) -> None:
    runs = Two(tmp_path, 0.6, judge="small")

    assert runs.find().cause is Cause.UNKNOWN
    assert "there is no anchor" in runs.find().reason
    assert runs.finder.changes == ("judge model: big is now small",)


def test_an_anchor_with_other_texts_is_none(tmp_path: Path) -> None:
    found = Two(tmp_path, 0.6, judge="small").anchor(0.6, answer="Another anchor.").find()

    assert found.cause is Cause.UNKNOWN
    assert "no anchor row has a score in both runs" in found.reason


def test_an_unreadable_anchor_is_none(tmp_path: Path) -> None:
    runs = Two(tmp_path, 0.6, judge="small").anchor(0.6)
    (runs.after / "anchor" / "run.json").write_text("{", encoding="utf-8")

    assert "there is no anchor" in runs.find().reason


def test_the_cause_of_a_slice_is_about_its_rows(tmp_path: Path) -> None:
    finder = Two(tmp_path, 0.6).anchor(0.8).finder

    found = finder.find("faithfulness", rows={"row-00", "row-03"})

    assert found.system is not None
    assert (found.cause, round(found.system.mean, 6)) == (Cause.SYSTEM, -0.2)
    assert finder.find("faithfulness", rows=()).cause is Cause.UNKNOWN
    assert "no rows with scores" in finder.find("nv_accuracy").reason


@pytest.mark.parametrize(
    "change", [{"config": {"verdict": "binary"}}, {"versions": {"rag-assay": "9"}}, {"embedder": {"model": "other"}}]
)
def test_anything_that_measures_differently_counts_as_the_judge(tmp_path: Path, change: dict[str, Any]) -> None:
    runs = Two(tmp_path, 0.6).anchor(0.6)
    _edit(runs.after, **change)

    found = runs.find()

    assert found.cause is Cause.JUDGE
    assert "another fingerprint" in found.reason


@pytest.mark.parametrize("formulas", ["same", "other"])
def test_another_version_counts_only_with_other_formulas(tmp_path: Path, formulas: str) -> None:
    runs = Two(tmp_path, 0.6).anchor(0.6)
    for run, digest, version in ((runs.before, "same", "1+g1"), (runs.after, formulas, "1+g2")):
        _edit(run, versions={"rag-assay": version})
        manifest = json.loads((run / "run.json").read_text())
        (run / "run.json").write_text(json.dumps(manifest | {"formulas": digest}))

    assert ("another fingerprint" in runs.find().reason) is (formulas == "other")


def test_runs_of_earlier_releases_have_no_known_fingerprint(tmp_path: Path) -> None:
    runs = Two(tmp_path, 0.6).anchor(0.6)
    _edit(runs.before, calibration={})

    assert "whether the judge has the same fingerprint is not known" in runs.find().reason


def _edit(run: Path, **entries: dict[str, Any]) -> None:
    """Update tables of run.json."""
    manifest = json.loads((run / "run.json").read_text())
    changed = {name: {**(manifest.get(name) or {}), **entry} if entry else {} for name, entry in entries.items()}
    (run / "run.json").write_text(json.dumps(manifest | changed))
