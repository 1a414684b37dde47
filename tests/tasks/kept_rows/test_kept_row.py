"""States of kept rows follow from their histories; lines of a set are read and written unchanged."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from metric_core.errors import SourceError
from metric_core.evidence_spans import EvidenceSpan, PlacedSpan, SpanState
from metric_core.records import KeyPoint, Sample
from tasks.kept_rows.kept_row import Event, Kept, KeptRow, Result, asked_columns, find_evidence
from tasks.kept_rows.set_file import read_set, write_set

MONDAY = datetime(2026, 11, 2, tzinfo=UTC)


def event(result: str, index: str | None, day: int = 0) -> Event:
    return Event(run=f"run {day}", at=MONDAY + timedelta(days=day), index=index, result=Result(result))


def play(*results: str, graduates_after: int = 2) -> Kept:
    """Return what is known of a row after results such as `good 2`, each in a version of the index."""
    kept = Kept(where=("failed",), history=(event("kept", "1"),))
    for day, each in enumerate(results, start=1):
        result, _, index = each.partition(" ")
        kept = kept.add(event(result, index or None, day), graduates_after)
    return kept


@pytest.mark.parametrize(
    ("results", "state", "good"),
    [
        ((), "failing", 0),
        (("bad 2",), "failing", 0),
        (("good 1",), "improving", 0),
        (("good 2",), "improving", 1),
        (("good 2", "good 2"), "improving", 1),
        (("good 2", "good 3"), "graduated", 2),
        (("good 2", "unknown 3", "good 4"), "graduated", 2),
        (("good 2", "bad 3", "good 4"), "improving", 1),
        (("good 2", "bad 3", "good 3"), "improving", 0),
        (("good 2", "good 3", "unknown 4"), "graduated", 2),
        (("good 2", "good 3", "bad 4"), "failing", 0),
        (("good", "good"), "improving", 0),
        (("gone 2",), "retired", 0),
        (("gone 2", "back 3"), "failing", 0),
        (("unknown 2",), "failing", 0),
    ],
)
def test_state_follows_from_the_results(results: tuple[str, ...], state: str, good: int) -> None:
    kept = play(*results)
    assert (str(kept.state), kept.good_rebuilds) == (state, good)


def test_nights_without_a_change_add_no_entry() -> None:
    kept = play("bad 1", "bad 1", "bad 1", "good 2", "good 2")
    assert [(each.result, each.index, each.run) for each in kept.history] == [
        ("kept", "1", "run 0"),
        ("bad", "1", "run 3"),
        ("good", "2", "run 5"),
    ]


def test_a_set_is_read_as_it_was_written(tmp_path: Path) -> None:
    kept = KeptRow({"id": "a", "user_input": "When?", "owner": "Ada"}, play("good 2"))
    by_hand = KeptRow({"id": "b", "user_input": "Where?", "reference": "In Delft."}, None)
    write_set(tmp_path / "sets" / "set.jsonl", [kept, by_hand])
    found = read_set(tmp_path / "sets" / "set.jsonl")
    assert [each.to_json() for each in found] == [kept.to_json(), by_hand.to_json()]
    assert found[0].kept == kept.kept
    assert read_set(tmp_path / "none.jsonl") == []


@pytest.mark.parametrize("line", ["{", '"text"', '{"kept": {"state": "failing"}}', '{"kept": {"stat": 1}}'])
def test_a_damaged_line_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "set.jsonl"
    path.write_text(f'{{"id": "a"}}\n{line}\n', encoding="utf-8")
    with pytest.raises(SourceError, match=r"set\.jsonl, line 2: not a row that `assay keep` wrote"):
        read_set(path)


def place(text: str, grade: float = 1.0) -> PlacedSpan:
    return PlacedSpan(EvidenceSpan(text, grade=grade), SpanState.CARRIED)


def evidence_of(sample: Sample) -> list[str]:
    """Return the texts of the surest evidence."""
    found = next((each for each in find_evidence(sample) if each.spans), None)
    return [] if found is None else [span.text for span in found.spans]


def test_evidence_is_what_was_judged_before_what_was_retrieved() -> None:
    row = Sample(retrieved_contexts=("a", "b"), retrieved_context_ids=("1", "2"))
    assert evidence_of(Sample()) == []
    assert evidence_of(row) == ["a", "b"]
    judged = Sample(
        retrieved_contexts=("a", "b"), retrieved_context_ids=("1", "2"), relevance_judgments={"1": 1.0, "2": 0.0}
    )
    assert evidence_of(judged) == ["a"]
    assert evidence_of(Sample(retrieved_contexts=("a",), reference_contexts=("c",))) == ["c"]
    points = (KeyPoint("It is.", evidence=(place("d"),)),)
    spans = (place("e"), place("f", grade=0.0))
    assert evidence_of(Sample(reference_contexts=("c",), key_points=points, evidence_spans=spans)) == ["e", "d"]


def test_evidence_of_a_row_without_judgments_has_the_words_of_the_reference() -> None:
    passages = ("We sell bikes, trailers and bells.", "The hall opens at nine on all days.", "The hall is in Delft.")
    row = Sample(retrieved_contexts=passages, reference="It opens at nine on all days but Sunday.")
    assert evidence_of(row) == [passages[1]]
    points = (KeyPoint("opens at nine"), KeyPoint("is in Delft"))
    assert evidence_of(Sample(retrieved_contexts=passages, key_points=points)) == [*passages[1:]]
    assert evidence_of(Sample(retrieved_contexts=passages, reference="No answer.")) == [*passages]


def test_columns_have_no_answer_of_the_system() -> None:
    points = (KeyPoint("It is.", evidence=(place("d"),)),)
    row = Sample(
        row_id="trace",
        user_input="When?",
        response="Never.",
        retrieved_contexts=("a",),
        reference="At nine.",
        key_points=points,
        relevance_judgments={"1": 1.0},
    )
    columns = asked_columns(row)
    assert set(columns) == {"id", "user_input", "reference", "key_points", "relevance_judgments"}
    assert columns["id"] != "trace"
    assert columns["key_points"][0]["evidence"][0]["text"] == "d"
