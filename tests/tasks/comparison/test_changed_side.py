"""System or judge, read from two run folders: rows with the same texts, fingerprints."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from metric_core.statistics.bounded_means import Bounds
from metric_core.statistics.pairs import Pairs
from tasks.comparison.changed_side import ChangedSide, Side, SideFinder
from tasks.comparison.mean_change import mean_change
from tasks.comparison.run_pair import Matching, RunPair
from tasks.findings.judge_facts import judge_evidence
from tasks.runs.finished_run import FinishedRun
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

    @property
    def finder(self) -> SideFinder:
        before, after = FinishedRun(self.before), FinishedRun(self.after)
        return SideFinder(before, RunPair.from_runs(before, after, Matching()), judge_evidence(before, after))

    def find(self, metric: str = "faithfulness") -> ChangedSide:
        return self.finder.find(metric)


def partly_equal(folder: Path, same: float, other: float, count: int, judge: str = "small") -> Two:
    """Return runs of two judges, the second with other answers in the rows after the first ones.

    Args:
        same: Level of the rows with the same texts; that of the baseline is 0.8.
        other: Level of the rows with other texts.
        count: Number of rows with the same texts.
    """
    runs = Two(folder, 0.6, judge=judge)
    shutil.rmtree(runs.after)
    levels, answers = [same] * count + [other] * (40 - count), ["In Dublin."] * count + ["Ask."] * (40 - count)
    compared.write_run(runs.after, levels, answers, **manifest_of(judge))
    return runs


@pytest.mark.parametrize("metric", ["faithfulness", "noise_sensitivity"])
def test_rows_with_the_same_texts_that_fell_are_the_judges(tmp_path: Path, metric: str) -> None:
    found = partly_equal(tmp_path, 0.6, 0.6, 25).find(metric)
    assert found.side is Side.JUDGE
    assert "another fingerprint, and 25 rows with the same texts changed by -0.200 (-0.2" in found.reason


def test_rows_with_other_texts_alone_that_fell_are_the_systems(tmp_path: Path) -> None:
    found = partly_equal(tmp_path, 0.8, 0.2, 20).find()
    assert found.side is Side.SYSTEM
    assert "20 rows with the same texts changed by +0.000" in found.reason
    assert "20 rows with other texts changed by -0.600" in found.reason


def test_too_few_rows_with_the_same_texts_name_nothing(tmp_path: Path) -> None:
    runs = partly_equal(tmp_path, 0.8, 0.2, 19)
    assert runs.find().side is Side.UNKNOWN
    assert runs.find().reason.endswith("on average, and there is no anchor")


def test_a_judge_in_this_process_with_the_same_fingerprint_leaves_the_system(tmp_path: Path) -> None:
    runs = Two(tmp_path, 0.6)
    for run in (runs.before, runs.after):
        _edit(run, judge={"backend": "builtin"})
    assert runs.find().sentence == (
        "The system changed: the judge has the same model, prompts and settings, and needs no server"
    )


def test_a_slice_is_about_its_rows(tmp_path: Path) -> None:
    runs = partly_equal(tmp_path, 0.8, 0.2, 20)
    fallen = {f"row-{row:02}" for row in range(20, 40)}
    assert runs.finder.find("faithfulness", rows=fallen).side is Side.UNKNOWN
    assert "none of these rows" in runs.finder.find("faithfulness", rows=()).reason
    assert "no rows with scores" in runs.finder.find("nv_accuracy").reason


@pytest.mark.parametrize(
    "change",
    [{"config": {"verdict": "probability"}}, {"versions": {"rag-assay": "9"}}, {"embedder": {"model": "other"}}],
)
def test_anything_that_measures_differently_counts_as_the_judge(tmp_path: Path, change: dict[str, Any]) -> None:
    runs = Two(tmp_path, 0.6, answer="In Dublin.")
    _edit(runs.after, **change)

    found = runs.find()

    assert found.side is Side.JUDGE
    assert "another fingerprint" in found.reason


@pytest.mark.parametrize("formulas", ["same", "other"])
def test_another_version_counts_only_with_other_formulas(tmp_path: Path, formulas: str) -> None:
    runs = Two(tmp_path, 0.6, answer="In Dublin.")
    for run, digest, version in ((runs.before, "same", "1+g1"), (runs.after, formulas, "1+g2")):
        _edit(run, versions={"rag-assay": version})
        manifest = json.loads((run / "run.json").read_text())
        (run / "run.json").write_text(json.dumps(manifest | {"formulas": digest}))

    assert ("another fingerprint" in runs.find().reason) is (formulas == "other")


def _edit(run: Path, **entries: dict[str, Any]) -> None:
    """Update tables of run.json."""
    manifest = json.loads((run / "run.json").read_text())
    changed = {name: {**(manifest.get(name) or {}), **entry} if entry else {} for name, entry in entries.items()}
    (run / "run.json").write_text(json.dumps(manifest | changed | {"judges": []}))


def test_the_mean_change_of_rows_counts_them_by_their_weight() -> None:
    pairs = Pairs(None, tuple("abcdef"), np.zeros(6), np.array([1.0, 1.0, 1.0, 0.0, 0.0, 0.0]), None, Bounds(0.0, 1.0))
    weighted = replace(pairs, weights=np.array([2.0, 2.0, 2.0, 1.0, 1.0, 1.0]))
    plain, found = (mean_change("rows", each, [True] * 6, 1.0) for each in (pairs, weighted))
    assert (plain.mean, round(found.mean, 3)) == (0.5, 0.667)
    assert found.interval != plain.interval
