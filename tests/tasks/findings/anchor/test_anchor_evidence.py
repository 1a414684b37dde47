"""System or judge, by the anchors of two runs: their scores, and rows of them that were asked about again."""

import json
from pathlib import Path
from typing import Any

from tasks.comparison.changed_side import Side
from tests.run_records import anchor_json
from tests.tasks import compared
from tests.tasks.comparison.test_changed_side import Two, manifest_of


def edit_record(run: Path, **entries: Any) -> None:
    """Replace entries of run.json."""
    manifest = json.loads((run / "run.json").read_text(encoding="utf-8"))
    (run / "run.json").write_text(json.dumps(manifest | entries), encoding="utf-8")


class Anchored(Two):
    """Two runs that may have an anchor."""

    def anchor(self, level: float, answer: str = "In Dublin.") -> "Anchored":
        """Add anchors, with scores of 0.8 and more in the baseline."""
        compared.write_run(self.before / "anchor", 0.8, **manifest_of("big"))
        compared.write_run(self.after / "anchor", level, answer, **manifest_of(self.judge))
        for run in (self.before, self.after):
            edit_record(run, anchor=anchor_json())
        return self

    def ask_again(self, run: Path, change: float, *, told: str | None = None, log_e_value: float = 0.0) -> "Anchored":
        """Add what a run found by asking about 30 anchor rows again: their scores, and whether a judge was told."""
        scores = {f"anchor {row}": [0.8, 0.8 + change] for row in range(30)}
        judge = {"judge": "big", "change": told and {"since": told}, "log_e_value": log_e_value, "has_returned": False}
        again = {"rows": 30, "judges": [judge], "scores": {"faithfulness": scores}}
        edit_record(run, anchor=anchor_json(asked_again=again))
        return self


def test_a_judge_grown_stricter_on_a_topic_that_the_anchor_lacks_is_not_called_the_system(tmp_path: Path) -> None:
    """All answers are others, as after a release of the system, so that the anchor alone could speak."""
    found = Anchored(tmp_path, 0.6, judge="small").anchor(0.8).find()
    assert found.sentence == (
        "It is not known whether the system or the judge changed: the judge has another fingerprint, and no row of the "
        "run has the same texts in both; as far as the anchor goes, 40 anchor rows changed by +0.000 (-0.071 to "
        "+0.070) on average"
    )
    lenient = Anchored(tmp_path / "lenient", 0.6, judge="small").anchor(0.6).find()
    assert lenient.side is Side.UNKNOWN
    assert "as far as the anchor goes, 40 anchor rows changed by -0.200" in lenient.reason


def test_cached_answers_of_a_server_do_not_show_that_it_still_answers_the_same(tmp_path: Path) -> None:
    runs = Anchored(tmp_path, 0.6).anchor(0.8)
    assert runs.find().side is Side.UNKNOWN
    found = runs.ask_again(runs.after, 0.0).find()
    assert found.side is Side.SYSTEM
    assert found.reason.endswith("as far as the anchor goes it answers as before: 30 rows asked again show no change")


def test_rows_asked_again_show_the_judge_behind_cached_answers(tmp_path: Path) -> None:
    runs = Anchored(tmp_path, 0.6).anchor(0.8)
    found = runs.ask_again(runs.after, -0.2, told="2026-11-20").find()
    assert found.side is Side.JUDGE
    assert found.reason.startswith(
        "the judge big answers differently under the same name, and 30 anchor rows asked again changed by -0.200"
    )
    unmoved = runs.ask_again(runs.after, 0.0, told="2026-11-20").find()
    assert unmoved.side is Side.UNKNOWN
    assert "as far as the anchor goes, 30 anchor rows asked again changed by +0.000" in unmoved.reason


def test_a_judge_that_is_in_doubt_but_not_told_is_named_by_its_rows(tmp_path: Path) -> None:
    runs = Anchored(tmp_path, 0.6).anchor(0.8)
    assert runs.ask_again(runs.after, -0.2, log_e_value=2.9).find().side is Side.SYSTEM
    found = runs.ask_again(runs.after, -0.2, log_e_value=3.0).find()
    assert found.side is Side.JUDGE
    assert found.reason.startswith("the judge has the same fingerprint, but its answers are in doubt, and 30 anchor")


def test_a_judge_that_had_changed_before_the_baseline_is_not_named(tmp_path: Path) -> None:
    runs = Anchored(tmp_path, 0.6).anchor(0.8)
    for run in (runs.before, runs.after):
        runs.ask_again(run, -0.2, told="2026-11-20", log_e_value=9.0)
    assert runs.find().side is Side.SYSTEM


def test_an_anchor_that_is_unreadable_or_has_other_texts_is_none(tmp_path: Path) -> None:
    other = Anchored(tmp_path / "other", 0.6, judge="small").anchor(0.6, answer="Another anchor.")
    assert other.find().reason.endswith("and there is no anchor")
    runs = Anchored(tmp_path, 0.6, judge="small").anchor(0.6)
    (runs.after / "anchor" / "run.json").write_text("{", encoding="utf-8")
    assert runs.find().reason.endswith("and there is no anchor")
    assert runs.finder.changes == ("judge model: big is now small",)
