"""Pairs of labels and scores, and reasons why some cannot be compared."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from metric_core.calibration.labels import LabelRules, read_labels
from metric_core.calibration.platt import ProbabilityMap
from metric_core.errors import AssayError, ConfigError, SourceError
from metric_core.metrics.registry import parse_request
from metric_core.records import Direction, Score
from metric_core.stages import Stage
from tasks.calibration.label_pairing import LabelledData, PairedLabels, Sampling, pair_labels, read_labelled
from tasks.calibration.run_labels import RunLabels, read_run_labels, write_labels
from tasks.runs.finished_run import FinishedRun
from tasks.sources import SourceOptions
from tests.tasks.reports import folders

RULES = LabelRules("label")
IDS = [f"r{number}" for number in range(6)]


def run_of(folder: Path, *scores: Score) -> FinishedRun:
    """A finished run with one metric and, for each row, a claim whose verdict has a probability of 0.8."""
    key = {"kind": "support", "claim_id": "response:0", "premise": "contexts", "status": "answered"}
    stages: dict[Stage, list[dict[str, Any]]] = {
        Stage.SAMPLES: [
            {"row_id": i, "row_number": n, "response": "Yes.", "retrieved_contexts": ["Yes."]}
            for n, i in enumerate(IDS)
        ],
        Stage.CLAIMS: [
            {"row_id": i, "side": "response", "claim_id": "response:0", "text": "Yes.", "status": "answered"}
            for i in IDS
        ],
        Stage.VERDICTS: [{"row_id": i, "verdict": 1, "probability": 0.8, **key} for i in IDS],
    }
    cells = {row_id: {"faithfulness": score} for row_id, score in zip(IDS, scores, strict=True)}
    entry = {"faithfulness": {"direction": Direction.HIGHER, "bounds": [0, 1]}}
    path = folders.write_run(folder / "run", cells, stages, entry, {"status": "completed"})
    return FinishedRun(path)


def compare(run: FinishedRun, *labels: Any) -> PairedLabels:
    data = LabelledData(read_labels(dict(zip(IDS, labels, strict=False)), RULES), None)
    return pair_labels(run, parse_request("faithfulness"), data, RULES)


def test_rows_with_a_label_and_a_score_are_compared_and_the_others_counted(tmp_path: Path) -> None:
    scored, undefined, failed = Score.scored(1), Score.undefined("no claims"), Score.failed("cut off")
    found = compare(run_of(tmp_path, scored, scored, scored, scored, undefined, failed), 1, 0, 1, 1, 1, 0)
    counts = found.counts
    assert (counts.rows, counts.compared, counts.positive, counts.undefined, counts.failed) == (6, 4, 3, 1, 1)
    assert found.judged.labels.tolist() == [1, 0, 1, 1]
    assert found.judged.probabilities is not None
    assert found.judged.predict is not None
    assert found.judged.probabilities.tolist() == [0.8] * 4
    assert found.judged.predict(ProbabilityMap(1.0, -np.log(4)), np.array([0])) == pytest.approx([0.5])
    assert found.warnings == ("4 rows are few: the intervals are wide",)


def test_no_map_is_fitted_if_it_would_need_missing_verdicts(tmp_path: Path) -> None:
    """A claim that the reference supports for sure is asked about no context; mapped, it would have to be."""
    claim = {"claim_id": "response:0", "text": "Yes.", "status": "answered"}
    verdict = {"kind": "support", "claim_id": "response:0", "premise": "reference", "status": "answered"}
    sample = {"response": "Yes.", "reference": "Yes.", "retrieved_contexts": ["Yes."]}
    stages: dict[Stage, list[dict[str, Any]]] = {
        Stage.SAMPLES: [{"row_id": i, "row_number": n, **sample} for n, i in enumerate(IDS)],
        Stage.CLAIMS: [
            {"row_id": i, **claim, "side": side, "claim_id": f"{side}:0"}
            for i in IDS
            for side in ("response", "reference")
        ],
        Stage.VERDICTS: [{"row_id": i, "verdict": 1, "probability": 1.0, **verdict} for i in IDS],
    }
    cells = {row_id: {"noise_sensitivity": Score.scored(0)} for row_id in IDS}
    entry = {"noise_sensitivity": {"direction": Direction.LOWER, "bounds": [0, 1]}}
    run = FinishedRun(folders.write_run(tmp_path / "run", cells, stages, entry, {"status": "completed"}))
    data = LabelledData(read_labels(dict(zip(IDS, (1, 0, 1, 0), strict=False)), RULES), None)
    judged = pair_labels(run, parse_request("noise_sensitivity"), data, RULES).judged
    assert judged.predict is None
    assert judged.probabilities is not None
    assert judged.probabilities.tolist() == [0] * 4


def test_grades_are_in_the_metric_s_range_or_scaled_to_it(tmp_path: Path) -> None:
    run = run_of(tmp_path, *[Score.scored(n / 5) for n in range(6)])
    inside = compare(run, 0, 0.5, 1, 0.25, 0, 1)
    assert (inside.span, inside.judged.labels[:3].tolist()) == ((0, 1), [0, 0.5, 1])
    outside = compare(run, 1, 2, 5, 3, 3, 4)
    assert (outside.span, outside.judged.labels[:3].tolist()) == ((1, 5), [0, 0.25, 1])
    assert outside.warnings[-1].startswith("grades are assumed to range from 1 to 5, as in the data")


@pytest.mark.parametrize(
    ("scores", "labels", "error", "words"),
    [
        ([Score.scored(1)] * 6, (1, 0, 1), SourceError, "of 6 rows, only 3 can be compared: 3 have no label"),
        ([Score.failed("x")] * 6, (1, 0, 1, 0), SourceError, "for 4 the judge returned nothing usable"),
        ([Score.failed("x")] + [Score.scored(1)] * 5, (0, 1, 1, 1, 1), SourceError, "all with the same label"),
        ([Score.scored(1)] * 6, (1,) * 6, SourceError, r"at least 60.6 % of all rows have this label \(95 % limit\)"),
        ([Score.labelled("formal")] * 6, (1, 0, 1, 0), ConfigError, "has categories as values"),
    ],
)
def test_rows_that_cannot_be_compared_have_a_reason(
    tmp_path: Path, scores: list[Score], labels: tuple[int, ...], error: type[AssayError], words: str
) -> None:
    with pytest.raises(error, match=words):
        compare(run_of(tmp_path, *scores), *labels)


def test_rows_of_a_stratum_stand_for_its_size_however_many_are_labelled(tmp_path: Path) -> None:
    drawn = [("a", 0.5, "1"), ("b", 0.5, ""), ("c", 0.5, "0"), ("d", 0.25, "1"), ("e", 0.25, "")]
    path = tmp_path / "labels.csv"
    header = "id,response,label,label_probability,label_stratum"
    rows = [
        f"{row},Yes {row}.,{label},{probability},{'A' if probability == 0.5 else 'B'}"
        for row, probability, label in drawn
    ]
    path.write_text("\n".join([header, *rows]) + "\n")
    sampling = read_labelled(str(path), SourceOptions(), RULES).sampling
    # Three drawn rows of A stand for six, and two of them are labelled; two of B stand for eight.
    assert sampling.probabilities == pytest.approx({"a": 2 / 6, "c": 2 / 6, "d": 1 / 8})
    assert sampling.strata == {"a": "A", "c": "A", "d": "B"}
    path.write_text("\n".join([header, *rows[:3], "d,Yes d.,,0.25,B"]) + "\n")
    with pytest.raises(SourceError, match="no row of the stratum 'B' in 'label_stratum' has a label yet"):
        read_labelled(str(path), SourceOptions(), RULES)
    path.write_text("\n".join([header, *rows[:3], "d,Yes d.,1,0.25,"]) + "\n")
    with pytest.raises(SourceError, match="the row 'd' is labelled, but has no stratum"):
        read_labelled(str(path), SourceOptions(), RULES)


def test_labels_of_strata_are_read_again_and_older_files_have_none(tmp_path: Path) -> None:
    labels = RunLabels(["a", "b"], [0.5, 1.0], [1.0, None], [0.5, None], None, ["A", None])
    write_labels(tmp_path, "mine", labels)
    assert read_run_labels(tmp_path, "mine") == labels
    table = pq.read_table(tmp_path / "labels.parquet")
    pq.write_table(table.drop_columns(["stratum"]), tmp_path / "labels.parquet")
    assert read_run_labels(tmp_path, "mine") == replace(labels, strata=None)


def test_labels_of_rows_chosen_by_their_scores_are_not_called_random(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = run_of(tmp_path, *map(Score.scored, (0.0, 0.1, 0.2, 0.3, 0.9, 1.0)))
    labels = read_labels(dict(zip(IDS[:4], (0, 1, 0, 1), strict=True)), RULES)
    data = LabelledData(labels, None, Sampling(is_random=True))
    paired = [pair_labels(run, parse_request("faithfulness"), data, RULES)]
    monkeypatch.setattr("tasks.calibration.label_pairing.p_random", lambda _sample: 1e-9)
    paired.append(pair_labels(run, parse_request("faithfulness"), data, RULES))
    assert [found.is_random for found in paired] == [True, False]
    assert [found.selected for found in paired] == [
        "",
        "the labelled rows are not a random sample of the run: they score 0.15 on average, the others 0.95 (p = 1e-09)",
    ]


def test_labels_are_counted_by_who_gave_them(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    rows = [("a", 1, "anna"), ("b", 0, " anna "), ("c", 1, "gpt-4o"), ("d", 0, ""), ("e", "", "ben")]
    lines = [f"{row},Yes {row}.,{label},{name}" for row, label, name in rows]
    path.write_text("\n".join(["id,response,label,annotator", *lines]) + "\n")
    assert read_labelled(str(path), SourceOptions(), RULES).annotators == {"anna": [1, 0], "gpt-4o": [1]}
    path.write_text("id,response,label\na,Yes.,1\nb,No.,0\n")
    assert read_labelled(str(path), SourceOptions(), RULES).annotators == {}
