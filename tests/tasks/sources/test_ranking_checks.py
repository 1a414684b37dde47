"""Rankings that disagree with their judgments, or with their own scores, are named."""

from pathlib import Path
from typing import Any

import pytest

from metric_core.errors import SourceError
from tests.tasks.sources.helpers import read, write_lines
from tests.tasks.sources.test_qrels_file import ROWS, grades

NONE_MET = "none of the judged passages is among the retrieved ones"


def warnings(tmp_path: Path, rows: list[dict[str, Any]], **options: Any) -> list[str]:
    return read(write_lines(tmp_path / "log.jsonl", rows), {}, **options)[0].warnings


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("qrels.txt", "q1 17 2 0\nq2 18 1 0\n"),
        ("qrels.txt", "q1 0 paper 2\nq2 0 paper 1\n"),
        ("qrels.csv", "qid,docno,label\nq1,other-1,2\nq2,other-2,1\n"),
    ],
)
def test_judgments_of_other_passages_are_named(name: str, content: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(content)
    [found] = warnings(tmp_path, ROWS, qrels=str(tmp_path / name))
    assert found.startswith(f"{NONE_MET} in any of 2 rows: judged are ")
    assert "retrieved 'a', 'b' and so on" in found


def test_judgments_of_a_column_are_checked_too(tmp_path: Path) -> None:
    rows = [{**ROWS[0], "qrels": {"x": 1}}]
    assert warnings(tmp_path, rows)[0].startswith(f"{NONE_MET} in the only row")
    assert warnings(tmp_path, [*rows, {**ROWS[1], "qrels": {"c": 0}}]) == []
    assert warnings(tmp_path, [{**ROWS[0], "retrieved_context_ids": [], "qrels": {"x": 1}}]) == []


@pytest.mark.parametrize("line", ["q1 a paper 2", "q1 guide-7 2 0", "q1 2 a 0 "])
def test_a_second_field_that_is_no_iteration_is_refused(line: str, tmp_path: Path) -> None:
    (tmp_path / "qrels.txt").write_text(line)
    if line == "q1 2 a 0 ":
        assert warnings(tmp_path, ROWS, qrels=str(tmp_path / "qrels.txt")) == [
            f"1 row has no judgments in {tmp_path / 'qrels.txt'}"
        ]
        return
    with pytest.raises(SourceError, match=r"line 1: the second field is '(a|guide-7)', where TREC has 0 or Q0"):
        warnings(tmp_path, ROWS, qrels=str(tmp_path / "qrels.txt"))


@pytest.mark.parametrize("header", ["qid,docno,label", "topic,docno,judgment", "query,pid,gain", "q_id,docid,rel"])
def test_tables_of_other_programs_are_read(header: str, tmp_path: Path) -> None:
    (tmp_path / "qrels.csv").write_text(f"{header}\nq1,a,2\nq2,c,1\n")
    _, table = read(write_lines(tmp_path / "log.jsonl", ROWS), {}, qrels=str(tmp_path / "qrels.csv"))
    assert grades(table) == [{"a": 2.0}, {"c": 1.0}]


@pytest.mark.parametrize(
    ("scores", "is_named"),
    [
        ([0.1, 0.9], True),
        ([None, 0.1, 0.1, 0.2], True),
        ([0.9, 0.1], False),
        ([0.5, 0.5], False),
        ([0.1, 0.9, 0.2], False),
    ],
)
def test_scores_that_rise_along_the_ranking_are_named(
    scores: list[float | None], is_named: bool, tmp_path: Path
) -> None:
    ids = [f"d{number}" for number in range(len(scores))]
    row = {"user_input": "Why?", "retrieved_context_ids": ids, "retrieved_context_scores": scores}
    found = warnings(tmp_path, [{**row, "qrels": {"d0": 1}}])
    assert [sentence.partition(":")[0] for sentence in found] == [
        "the scores rise along the ranking in 1 row"
    ] * is_named
    assert warnings(tmp_path, [row]) == []
