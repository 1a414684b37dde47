"""Chunks of an index that say nearly the same, but with another value."""

import pytest

from tasks.disagreements import near_duplicates
from tasks.disagreements.near_duplicates import NearDuplicates
from tasks.sources.anchoring.span_places import Chunk
from tasks.sources.chunk_file import IndexChunk
from tasks.sources.index_checks import IndexFinding, open_checks

OLD = (
    "Personal data is deleted when its purpose has ended. Camera footage from the Rotterdam warehouse is kept for 72 "
    "hours. Requests arrive by letter in Dublin, and the identity of the sender is checked before anything is released."
)
NEW = OLD.replace("72 hours", "two weeks")
OTHER = "Lunch is free on Mondays, and whoever brings a guest tells the kitchen by noon on the day before the visit."


def check(*chunks: tuple[str, str | None]) -> list[IndexFinding]:
    found = NearDuplicates()
    for number, (text, document) in enumerate(chunks):
        found.add(IndexChunk(Chunk(f"c{number}", text, document), {}))
    return [*found.findings()]


def test_chunks_of_two_documents_with_another_value_are_named() -> None:
    (found,) = check((OLD, "rules.md"), (OTHER, "lunch.md"), (f"{NEW} Thanks.", "copy of rules.md"))
    assert (found.kind, found.count, found.of, found.is_beyond) == ("disagreeing", 1, 3, False)
    assert found.examples == ("c0 (72 hours) and c2 (two weeks)",)


@pytest.mark.parametrize(
    "other",
    [
        (OLD, "b"),
        (OLD.replace("72 hours", "three days"), "b"),
        (NEW, "a"),
        (OTHER, "b"),
        ("Camera footage: two weeks.", "b"),
        ("", None),
    ],
)
def test_other_chunks_are_not_named(other: tuple[str, str | None]) -> None:
    assert check((OLD, "a"), other) == []


def test_chunks_without_documents_are_compared() -> None:
    assert len(check((OLD, None), (NEW, None))) == 1


def test_of_a_large_index_the_first_chunks_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(near_duplicates, "MOST_CHUNKS", 2)
    (found,) = check((OLD, "a"), (NEW, "b"), (OLD, "c"))
    assert found.count == 1
    assert found.sentence.endswith("; only the first 2 chunks of more than a few words were compared")
    (none,) = check((OLD, "a"), (OTHER, "b"), (NEW, "c"))
    assert (none.count, none.sentence[:7]) == (0, "no pair")


def test_an_empty_index_has_no_findings() -> None:
    assert check() == []


def test_the_check_comes_in_by_its_door() -> None:
    assert [each for each in open_checks() if isinstance(each, NearDuplicates)]
