"""Labels from pages: stored by text, checked against the run, and paired with the rows and claims of every metric."""

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from metric_core.calibration.labels import LabelRules, Scale
from metric_core.errors import ConfigError, SourceError
from metric_core.records import Score
from metric_core.stages import Stage
from tasks.calibration.label_imports import draw_disagreements, import_labels
from tasks.calibration.label_items import list_rows, list_verdicts
from tasks.calibration.label_pairing import PairedLabels
from tasks.calibration.label_sampling import DrawnSample, SampleOptions, draw_sample
from tasks.calibration.label_store import LabelPageFacts, find_labels, read_exported
from tasks.calibration.run_labels import Disagreement
from tasks.calibration.stored_labels import pair_stored
from tasks.runs.finished_run import FinishedRun
from tests.tasks.reports import folders

ROWS = 20
RULES = LabelRules("people")
SECOND = "faithfulness of claims"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the home in which labels are stored."""
    monkeypatch.setenv("ASSAY_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def write_run(folder: Path, rows: int = ROWS, word: str = "Claim") -> FinishedRun:
    """A run with one to three claims per row, supported with probabilities from 0 to 1, and two metrics of them."""
    ids = [f"r{number:02}" for number in range(rows)]
    claims = [
        {"row_id": row, "side": "response", "claim_id": f"response:{k}", "text": f"{word} {k} of {row}."}
        for number, row in enumerate(ids)
        for k in range(1 + number % 3)
    ]
    stages: dict[Stage, list[dict[str, Any]]] = {
        Stage.SAMPLES: [
            {"row_id": row, "row_number": n, "user_input": row, "response": word, "retrieved_contexts": ["Text."]}
            for n, row in enumerate(ids)
        ],
        Stage.CLAIMS: [{**claim, "status": "answered"} for claim in claims],
        Stage.VERDICTS: [
            {
                "row_id": claim["row_id"],
                "claim_id": claim["claim_id"],
                "kind": "support",
                "premise": "contexts",
                "verdict": number % 2,
                "probability": (number % 2 + number / len(claims)) / 2,
                "status": "answered",
                "panel": [{"judge": "a", "label": "yes"}, {"judge": "b", "label": "no" if number == 3 else "yes"}],
            }
            for number, claim in enumerate(claims)
        ],
    }
    cells = {row: dict.fromkeys(("faithfulness", SECOND), Score.scored(0.5)) for row in ids}
    verdicts = {(row["row_id"], row["claim_id"]): row["verdict"] for row in stages[Stage.VERDICTS]}
    for row in ids:
        own = [verdict for (row_id, _), verdict in verdicts.items() if row_id == row]
        cells[row] = dict.fromkeys(("faithfulness", SECOND), Score.scored(sum(own) / len(own)))
    entry = {"direction": "higher", "bounds": [0.0, 1.0], "name": "faithfulness"}
    path = folders.write_run(
        folder, cells, stages, dict.fromkeys(("faithfulness", SECOND), entry), {"status": "completed"}
    )
    return FinishedRun(path)


def export(
    sample: DrawnSample, file: Path, say: Callable[[str], float | None], name: str = "anna", **more: Any
) -> Path:
    """Write what a person exports who labels all items of a page.

    Args:
        **more: Other facts of the page.
    """
    drawn = zip(
        [item.digest for item in sample.items],
        sample.probabilities or [None] * len(sample.items),
        sample.strata or [None] * len(sample.items),
        strict=True,
    )
    facts: dict[str, Any] = {
        "run": "run",
        "metric": "faithfulness",
        "sample": sample.digest,
        "frame": sample.frame,
        "is_final": False,
    }
    facts |= {"answers": (0.0, 1.0), **more}
    page = LabelPageFacts(**facts, items=tuple(drawn))
    lines = [
        {
            "item": item.digest,
            "annotator": name,
            "label": say(item.key),
            "labelled_at": "2026-11-26T12:00:00.000Z",
            "probability": probability,
            "stratum": stratum,
            **facts,
            "page": page.digest,
        }
        for item, (_, probability, stratum) in zip(sample.items, page.items, strict=True)
    ]
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return file


def truth(key: str) -> float:
    """The label that people give a row or a claim."""
    return float(int(key[1:3]) % 4 > 0)


def label(run: FinishedRun, file: Path, name: str = "anna", **options: Any) -> DrawnSample:
    """Draw, label and import; people find every fourth row wrong, with all of its claims."""
    sample = draw_sample(run, SampleOptions(**{"metric": "faithfulness", "budget": 12, **options}))
    import_labels(run, "faithfulness", [export(sample, file, truth, name)])
    return sample


def pair(run: FinishedRun, metric: str = "faithfulness") -> PairedLabels:
    request = next(request for request in run.requests if request.key == metric)
    return pair_stored(run, request, RULES, None)[1]


def test_labels_of_claims_reach_every_metric_that_reads_the_verdicts(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    sample = label(run, tmp_path / "page.jsonl", is_claims=True)
    good = sum(truth(item.key) for item in sample.items)
    for metric in ("faithfulness", SECOND):
        paired = pair(run, metric)
        assert (paired.counts.rows, paired.counts.compared, paired.counts.positive) == (39, 12, good)
        assert paired.is_random
        of_run = paired.of_run
        assert of_run is not None
        assert of_run.weights is not None
        assert sum(of_run.weights) == pytest.approx(ROWS)
        assert of_run.groups is not None
        assert len(set(of_run.groups)) == ROWS  # errors of claims of one row belong together
        assert paired.judged.predict is not None


def test_labels_serve_runs_with_the_same_texts_as_a_sample_only_if_all_could_have_been_drawn(tmp_path: Path) -> None:
    label(write_run(tmp_path / "run"), tmp_path / "page.jsonl")
    assert pair(write_run(tmp_path / "again")).is_random
    assert pair(write_run(tmp_path / "part", rows=ROWS - 2)).is_random
    assert not pair(write_run(tmp_path / "more", rows=ROWS + 5)).is_random
    with pytest.raises(SourceError, match="no labels of faithfulness are stored for texts of"):
        pair(write_run(tmp_path / "other", word="Another claim"))


def test_samples_that_were_drawn_alike_are_used_together(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    first = label(run, tmp_path / "1.jsonl", budget=8)
    second = label(run, tmp_path / "2.jsonl", budget=8, seed=5, name="ben")
    union = {item.digest for item in (*first.items, *second.items)}
    assert len(union) > 8
    assert pair(run).counts.compared == len(union)
    third = label(run, tmp_path / "3.jsonl", budget=16, is_active=True, name="ben")
    paired = pair(run)
    assert paired.counts.compared == len(third.items)
    unused = len(union - {item.digest for item in third.items})
    assert paired.warnings[-1] == f"{unused} labels of other samples are not used: they were drawn in another way"


def test_an_active_sample_keeps_its_probabilities_and_strata(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    sample = label(run, tmp_path / "page.jsonl", is_claims=True, is_active=True)
    assert sample.strata is not None
    assert sample.probabilities is not None
    of_run = pair(run).of_run
    assert of_run is not None
    assert of_run.strata is not None
    assert of_run.probabilities is not None
    known = {
        name: (stratum, p) for name, stratum, p in zip(of_run.rows, of_run.strata, of_run.probabilities, strict=True)
    }
    for item, stratum, p in zip(sample.items, sample.strata, sample.probabilities, strict=True):
        assert known[item.key][0] == stratum
        assert known[item.key][1] == pytest.approx(p)
    beliefs = {
        stratum: [i.belief for i, s in zip(sample.items, sample.strata, strict=True) if s == stratum]
        for stratum in sample.strata
    }
    spans = sorted((min(of), max(of)) for of in beliefs.values())
    assert all(before[1] < after[0] for before, after in pairwise(spans))


def test_labels_of_other_texts_and_damaged_files_are_refused(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    sample = draw_sample(run, SampleOptions(metric="faithfulness", budget=4))
    file = export(sample, tmp_path / "page.jsonl", lambda _: 1.0)
    with pytest.raises(SourceError, match="4 of 4 labelled texts are not judged for faithfulness"):
        import_labels(write_run(tmp_path / "other", word="Other"), "faithfulness", [file])
    with pytest.raises(SourceError, match="the page was drawn from other texts"):
        import_labels(write_run(tmp_path / "more", rows=ROWS + 1), "faithfulness", [file])
    good = file.read_text(encoding="utf-8").splitlines()[0]
    for field, value in (
        ("label", "yes"),
        ("label", float("nan")),
        ("annotator", " "),
        ("annotator", "a" * 201),
        ("probability", 2),
        ("probability", 0),
        ("labelled_at", "yesterday"),
        ("item", None),
    ):
        file.write_text(json.dumps(json.loads(good) | {field: value}), encoding="utf-8")
        with pytest.raises(SourceError, match=f"line 1 of .* is not a label \\({field}"):
            read_exported(file, "faithfulness")
    file.write_text("", encoding="utf-8")
    with pytest.raises(SourceError, match="has no labels"):
        read_exported(file, "faithfulness")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"label": -1}, r"line 1 of .* is not a label \(label: got -1, wanted one of 0, 1\)"),
        ({"label": 1e308}, r"label: got 1e\+308, wanted one of 0, 1"),
        ({"label": True}, "label: Input should be a valid number"),
        ({"is_final": "yes"}, "is_final: Input should be a valid boolean"),
        ({"is_final": True}, "is not as its page exported it"),
        ({"probability": 1e-300}, "is not as its page exported it"),
        ({"stratum": "b"}, "is not as its page exported it"),
        ({"answers": [-1, 0, 1]}, "is not as its page exported it"),
        ({"labelled_at": None}, "labelled_at: a label without a time"),
        ({"metric": SECOND}, f"has labels of {SECOND}, wanted faithfulness"),
    ],
)
def test_labels_that_are_not_as_their_page_exported_them_are_refused(
    tmp_path: Path, change: dict[str, Any], problem: str
) -> None:
    run = write_run(tmp_path / "run")
    sample = draw_sample(run, SampleOptions(metric="faithfulness", budget=4))
    file = export(sample, tmp_path / "page.jsonl", lambda _: 1.0)
    first, *others = file.read_text(encoding="utf-8").splitlines()
    file.write_text("\n".join([json.dumps(json.loads(first) | change), *others]), encoding="utf-8")
    with pytest.raises(SourceError, match=problem):
        import_labels(run, "faithfulness", [file])
    assert find_labels({item.digest for item in sample.items}) == []


def test_missing_lines_and_doubled_keys_are_found_and_a_file_of_two_people_is_read(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    sample = draw_sample(run, SampleOptions(metric="faithfulness", budget=4))
    anna, ben = (export(sample, tmp_path / f"{name}.jsonl", truth, name).read_text("utf-8") for name in ("anna", "ben"))
    file = tmp_path / "page.jsonl"
    file.write_text(anna + ben + anna, encoding="utf-8")
    assert len(read_exported(file, "faithfulness")) == 12
    file.write_text(anna[anna.index("\n") + 1 :], encoding="utf-8")
    with pytest.raises(SourceError, match="Lines were removed or changed after the export"):
        read_exported(file, "faithfulness")
    file.write_text(anna.replace('"label": ', '"label": 0, "label": ', 1), encoding="utf-8")
    with pytest.raises(SourceError, match=r"line 1 of .*the key 'label' is given twice"):
        read_exported(file, "faithfulness")


def test_grades_stay_grades_though_all_are_0_or_1_and_do_not_mix_with_yes_and_no(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    sample = draw_sample(run, SampleOptions(metric="faithfulness", budget=12))
    grades = export(sample, tmp_path / "grades.jsonl", truth, answers=(0.0, 1.0, 2.0, 3.0))
    import_labels(run, "faithfulness", [grades])
    paired = pair(run)
    assert (paired.judged.scale, paired.span) == (Scale.GRADED, (0.0, 3.0))
    with pytest.raises(SourceError, match="are yes and no and grades from 0 to 3: a calibration has one kind"):
        import_labels(run, "faithfulness", [export(sample, tmp_path / "ben.jsonl", truth, "ben")])


def test_of_two_labels_at_one_time_none_wins_by_the_name_of_its_file(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    sample = label(run, tmp_path / "page.jsonl")
    again = export(sample, tmp_path / "again.jsonl", lambda key: 1.0 - truth(key))
    found = import_labels(run, "faithfulness", [again]).known.settled
    assert len(found.contested) == len(sample.items)


def test_the_same_labels_are_stored_once_and_contested_ones_block_an_estimate(tmp_path: Path, home: Path) -> None:
    run = write_run(tmp_path / "run")
    sample = label(run, tmp_path / "page.jsonl")
    import_labels(run, "faithfulness", [tmp_path / "page.jsonl"])
    assert len(list((home / "labels").glob("*.parquet"))) == 1
    assert len(find_labels({item.digest for item in sample.items})) == 12
    wrong = sum(truth(item.key) == 0 for item in sample.items)
    other = export(sample, tmp_path / "ben.jsonl", lambda _: 1.0, "ben")
    found = import_labels(run, "faithfulness", [other]).known.settled
    assert 0 < len(found.contested) == wrong
    with pytest.raises(
        SourceError, match=rf"people disagree on {wrong} labels of faithfulness, .*--disagreement people"
    ):
        pair(run)
    work = draw_disagreements(run, "faithfulness", Disagreement.PEOPLE, 100, is_claims=False)
    assert {item.digest for item in work.items} == set(found.contested)
    assert work.probabilities is None
    import_labels(run, "faithfulness", [export(work, tmp_path / "carl.jsonl", truth, "carl", is_final=True)])
    assert pair(run).is_random


def test_disagreements_of_judges_and_of_judge_and_people_are_work_lists(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    [split] = draw_disagreements(run, "faithfulness", Disagreement.JUDGES, 9, is_claims=True).items
    assert split.is_split
    with pytest.raises(ConfigError, match=r"no disagreement \(judge-people\)"):
        draw_disagreements(run, "faithfulness", Disagreement.JUDGE_AND_PEOPLE, 9, is_claims=True)
    items = list_verdicts(run, run.requests[0])
    sample = label(run, tmp_path / "page.jsonl", is_claims=True)
    work = draw_disagreements(run, "faithfulness", Disagreement.JUDGE_AND_PEOPLE, 99, is_claims=True).items
    drawn = {item.digest for item in sample.items}
    assert {item.digest for item in work} == {
        item.digest for item in items if item.digest in drawn and truth(item.key) != item.score
    }


def test_items_are_what_the_metric_has_scored(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    assert len(list_rows(run, "faithfulness")) == ROWS
    items = list_verdicts(run, run.requests[0])
    assert len({item.digest for item in items}) == len(items) == 39
    assert {item.digest for item in items} == {item.digest for item in list_verdicts(run, run.requests[1])}
    assert {item.digest for item in list_rows(run, SECOND)}.isdisjoint(
        {item.digest for item in list_rows(run, "faithfulness")}
    )
