"""System or judge, read from two run folders: rows with the same texts, fingerprints, anchors."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tasks.comparison.changed_side import ChangedSide, Side, SideFinder
from tasks.runs.finished_run import FinishedRun
from tests.run_records import anchor_json
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
        judge = {"judge": "big", "change": told and {"since": told}, "log_e_value": log_e_value, "has_returned": False}
        manifest = json.loads((run / "run.json").read_text(encoding="utf-8"))
        again = {"rows": 30, "judges": [judge], "scores": {"faithfulness": scores}}
        manifest["anchor"] = anchor_json(asked_again=again)
        (run / "run.json").write_text(json.dumps(manifest), encoding="utf-8")
        return self

    @property
    def finder(self) -> SideFinder:
        return SideFinder.from_runs(FinishedRun(self.before), FinishedRun(self.after))

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


def test_a_judge_grown_stricter_on_a_topic_that_the_anchor_lacks_is_not_called_the_system(tmp_path: Path) -> None:
    """All answers are others, as after a release of the system, so that the anchor alone could speak."""
    found = Two(tmp_path, 0.6, judge="small").anchor(0.8).find()
    assert found.sentence == (
        "It is not known whether the system or the judge changed: the judge has another fingerprint, and no row of the "
        "run has the same texts in both; as far as the anchor goes, 40 anchor rows changed by +0.000 (-0.054 to "
        "+0.055) on average"
    )
    lenient = Two(tmp_path / "lenient", 0.6, judge="small").anchor(0.6).find()
    assert lenient.side is Side.UNKNOWN
    assert "as far as the anchor goes, 40 anchor rows changed by -0.200" in lenient.reason


def test_a_judge_in_this_process_with_the_same_fingerprint_leaves_the_system(tmp_path: Path) -> None:
    runs = Two(tmp_path, 0.6)
    for run in (runs.before, runs.after):
        _edit(run, judge={"backend": "builtin"})
    assert runs.find().sentence == (
        "The system changed: the judge has the same model, prompts and settings, and needs no server"
    )


def test_cached_answers_of_a_server_do_not_show_that_it_still_answers_the_same(tmp_path: Path) -> None:
    runs = Two(tmp_path, 0.6).anchor(0.8)
    assert runs.find().side is Side.UNKNOWN
    found = runs.ask_again(runs.after, 0.0).find()
    assert found.side is Side.SYSTEM
    assert found.reason.endswith("its answers about 30 anchor rows asked again show no change")


def test_rows_asked_again_show_the_judge_behind_cached_answers(tmp_path: Path) -> None:
    runs = Two(tmp_path, 0.6).anchor(0.8)
    found = runs.ask_again(runs.after, -0.2, told="2026-11-20").find()
    assert found.side is Side.JUDGE
    assert found.reason.startswith(
        "the judge big answers differently under the same name, and 30 anchor rows asked again changed by -0.200"
    )
    unmoved = runs.ask_again(runs.after, 0.0, told="2026-11-20").find()
    assert unmoved.side is Side.UNKNOWN
    assert "as far as the anchor goes, 30 anchor rows asked again changed by +0.000" in unmoved.reason


def test_a_judge_that_is_in_doubt_but_not_told_is_named_by_its_rows(tmp_path: Path) -> None:
    runs = Two(tmp_path, 0.6).anchor(0.8)
    assert runs.ask_again(runs.after, -0.2, log_e_value=2.9).find().side is Side.SYSTEM
    found = runs.ask_again(runs.after, -0.2, log_e_value=3.0).find()
    assert found.side is Side.JUDGE
    assert found.reason.startswith("the judge has the same fingerprint, but its answers are in doubt, and 30 anchor")


def test_a_judge_that_had_changed_before_the_baseline_is_not_named(tmp_path: Path) -> None:
    runs = Two(tmp_path, 0.6).anchor(0.8)
    for run in (runs.before, runs.after):
        runs.ask_again(run, -0.2, told="2026-11-20", log_e_value=9.0)
    assert runs.find().side is Side.SYSTEM


def test_an_anchor_that_is_unreadable_or_has_other_texts_is_none(tmp_path: Path) -> None:
    other = Two(tmp_path / "other", 0.6, judge="small").anchor(0.6, answer="Another anchor.")
    assert other.find().reason.endswith("and there is no anchor")
    runs = Two(tmp_path, 0.6, judge="small").anchor(0.6)
    (runs.after / "anchor" / "run.json").write_text("{", encoding="utf-8")
    assert runs.find().reason.endswith("and there is no anchor")
    assert runs.finder.changes == ("judge model: big is now small",)


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
