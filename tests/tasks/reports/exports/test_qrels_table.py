"""The judgments of a run become qrels, which other runs read again."""

import io
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import pytrec_eval
from hypothesis import given, settings
from hypothesis import strategies as st

from metric_core.errors import ConfigError
from metric_core.evidence_spans import EvidenceSpan, PlacedSpan, SpanPart, SpanState
from metric_core.records import Score
from metric_core.stages import Stage
from tasks.reports.exports.qrels_table import QRELS, read_qrels_of_run, write_qrels
from tasks.reports.exports.score_tables import Format, write_export
from tasks.sources.location import open_file
from tasks.sources.qrels_file import QueryJudgments, read_qrels
from tests.tasks.reports import folders

SAMPLES: list[dict[str, Any]] = [
    {
        "row_id": "q1",
        "row_number": 1,
        "retrieved_contexts": ["one", "two", "one", "three"],
        "retrieved_context_ids": ["a", "b", "a", "c"],
        "relevance_judgments": [{"id": "b", "grade": 1.0}, {"id": "z", "grade": 0.0}],
    },
    {"row_id": "q2", "row_number": 2, "retrieved_contexts": ["two"], "retrieved_context_ids": ["b"]},
]
GRADES = {("q1", 0): "3", ("q1", 1): "0", ("q1", 3): None, ("q2", 0): "2"}


def write_run(folder: Path, samples: list[dict[str, Any]], grades: dict[tuple[str, int], str | None]) -> Path:
    """Write a run whose judge has graded passages, for two metrics."""
    ratings = [
        {
            "row_id": row_id,
            "metric": metric,
            "template": f"passage:{index}",
            "vote": 0,
            "value": value,
            "status": "failed" if value is None else "answered",
        }
        for metric in ("ndcg(judgments=judge)", "hit_rate(judgments=judge)")
        for (row_id, index), value in grades.items()
    ]
    scores = {sample["row_id"]: {"faithfulness": Score.scored(1.0)} for sample in samples}
    stages = {Stage.SAMPLES: samples, Stage.RATINGS: ratings}
    return folders.write_run(folder, scores, stages, {"faithfulness": folders.METRICS["faithfulness"]}, {})


def test_given_grades_go_before_those_of_the_judge(tmp_path: Path) -> None:
    table = read_qrels_of_run(write_run(tmp_path / "run", SAMPLES, GRADES))
    assert [tuple(row.values())[:5] for row in table.to_pylist()] == [
        ("q1", "b", 1.0, "given", "two"),
        ("q1", "z", 0.0, "given", None),
        ("q1", "a", 3.0, "judge", "one"),
        ("q2", "b", 2.0, "judge", "two"),
    ]


WORDS = st.text(st.characters(codec="utf-8", exclude_categories=("Z", "C")), min_size=1, max_size=5)
IDS = st.text(st.characters(codec="utf-8"), max_size=5) | st.sampled_from(
    ["query_id", "NaN", "null", "0", "1e5", '"', ""]
)
JUDGMENTS = st.dictionaries(IDS, st.dictionaries(IDS, st.floats(allow_nan=False, allow_infinity=False), min_size=1))
TREC = st.dictionaries(WORDS, st.dictionaries(WORDS, st.integers(-3, 2**53).map(float), min_size=1), min_size=1)
a_property = settings(max_examples=100, deadline=None, derandomize=True)


def table_of(judgments: dict[str, dict[str, float]]) -> pa.Table:
    """Return judgments as they are exported."""
    rows = [
        {"query_id": query, "passage_id": passage, "grade": grade, "source": "given"}
        for query, grades in judgments.items()
        for passage, grade in grades.items()
    ]
    return pa.Table.from_pylist(rows, schema=QRELS)


def grades_in(path: Path) -> dict[str, dict[str, float]]:
    """Return the grades in a file of qrels, by query and passage."""
    return {query: found.grades for query, found in read_qrels(open_file(str(path))).items()}


@pytest.mark.parametrize("file_format", list(Format))
@a_property
@given(judgments=JUDGMENTS.filter(bool))
def test_exported_judgments_are_read_again(file_format: Format, judgments: dict[str, dict[str, float]]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / f"qrels.{file_format}"
        write_export(table_of(judgments), path, file_format)
        assert grades_in(path) == judgments


@a_property
@given(judgments=TREC)
def test_trec_qrels_are_read_again_here_and_elsewhere(judgments: dict[str, dict[str, float]]) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "qrels.txt"
        write_qrels(table_of(judgments), path)
        assert grades_in(path) == judgments
        with path.open(encoding="utf-8", newline="\n") as file:
            assert pytrec_eval.parse_qrel(file) == judgments


def test_the_table_of_beir_is_read(tmp_path: Path) -> None:
    wanted = {"q1": {"a b": 2.0, "c": 0.0}}
    (tmp_path / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\ta b\t2\nq1\tc\t0\n")
    (tmp_path / "trec.tsv").write_text("q1\t0\tab\t2\nq1\t0\tc\t0\n")
    rows = [{"query-id": "q1", "corpus-id": "a b", "score": 2}, {"query-id": "q1", "corpus-id": "c", "score": 0}]
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "test.parquet")
    for name in ("test.tsv", "test.parquet"):
        assert grades_in(tmp_path / name) == wanted
    assert grades_in(tmp_path / "trec.tsv") == {"q1": {"ab": 2.0, "c": 0.0}}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"relevance_judgments": [{"id": "the guide", "grade": 1.0}]}, "passage_id 'the guide' has white space"),
        ({"relevance_judgments": [{"id": "a", "grade": 0.5}]}, r"the grade 0\.5 is not a whole number"),
    ],
)
def test_trec_refuses_what_it_cannot_hold(change: dict[str, Any], problem: str, tmp_path: Path) -> None:
    table = read_qrels_of_run(write_run(tmp_path / "run", [SAMPLES[0] | change], {}))
    with pytest.raises(ConfigError, match=f"{problem}.*; write qrels as CSV instead"):
        write_qrels(table, io.BytesIO())


def test_a_run_without_judgments_or_ids_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no relevance judgments"):
        read_qrels_of_run(write_run(tmp_path / "none", [SAMPLES[1]], {}))
    nameless = SAMPLES[1] | {"retrieved_context_ids": None}
    with pytest.raises(ConfigError, match="passages of the run have no ids"):
        read_qrels_of_run(write_run(tmp_path / "nameless", [nameless], {("q2", 0): "2"}))


def test_judged_texts_are_exported_and_read_again(tmp_path: Path) -> None:
    fee = EvidenceSpan("The fee is 40 euros.", "fees.md", 7, 27, 2.0, "of the gym", "a year")
    spans = [
        PlacedSpan(fee, SpanState.CARRIED, (SpanPart("a", 0.0, 0.4, 0.1), SpanPart("b", 0.4, 1.0, 0.1))),
        PlacedSpan(EvidenceSpan("Dogs pay."), SpanState.EDITED, change="'dogs' became 'cats'"),
    ]
    grades = [{"id": "b", "grade": 2.0}, {"id": "c", "grade": 1.0}]
    sample = SAMPLES[0] | {"relevance_judgments": grades, "evidence_spans": [span.to_json() for span in spans]}
    run = write_run(tmp_path / "run", [sample], {})
    path = tmp_path / "qrels.jsonl"
    write_export(read_qrels_of_run(run), path, Format.JSONL)
    three = EvidenceSpan("three", grade=1.0)
    found = read_qrels(open_file(str(path)))
    assert found == {"q1": QueryJudgments({}, [fee, three])}
    assert [(span.before, span.after) for span in found["q1"].spans] == [("of the gym", "a year"), ("", "")]
    by_id = read_qrels_of_run(run, with_texts=False).to_pylist()
    assert [(row["passage_id"], row["grade"], row["text"]) for row in by_id] == [("b", 2.0, None), ("c", 1.0, None)]
