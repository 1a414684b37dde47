"""Spans are carried if chunks hold all their words, whatever the cut, and never if a word of them has changed."""

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from metric_core.evidence_spans import EvidenceSpan, PlacedSpan, SpanState
from tasks.sources.anchoring.span_places import Chunk, SpanPlaces

FEE = "Members of the gym in Delft pay 40 euros a year and may not bring guests."
TEXT = f"Opening hours are posted at the door of each hall. {FEE} Lunch is served at noon on every working day."
SPAN = EvidenceSpan(FEE, "gym", TEXT.index(FEE), TEXT.index(FEE) + len(FEE))
CHANGES = {
    "number": FEE.replace("40", "45"),
    "decimal": FEE.replace("40", "4.0"),
    "minus": FEE.replace("40", "-40"),
    "name": FEE.replace("Delft", "Leiden"),
    "negation removed": FEE.replace("not ", ""),
    "negation added": FEE.replace("pay", "never pay"),
    "word swapped": FEE.replace("guests", "dogs"),
    "unit": FEE.replace("year", "month"),
}
a_property = settings(max_examples=60, deadline=None, derandomize=True)


def cut(text: str, size: int, document: str | None = "gym", overlap: int = 0) -> list[Chunk]:
    """Return the chunks of a text, by characters, so that words are cut too."""
    starts = range(0, max(len(text) - overlap, 1), size - overlap)
    return [
        Chunk(f"{document}-{size}-{at}", text[at : at + size], document, at, min(at + size, len(text))) for at in starts
    ]


def place(span: EvidenceSpan, chunks: list[Chunk], *, is_complete: bool = True) -> PlacedSpan:
    places = SpanPlaces([span], is_complete=is_complete)
    places.read(chunks)
    return places.place(span)


def nameless(span: EvidenceSpan) -> EvidenceSpan:
    return replace(span, document=None, start=None, end=None)


def covered_share(placed: PlacedSpan) -> float:
    """Return the share of a span that the parts cover."""
    length, reached = 0.0, 0.0
    for part in sorted(placed.parts, key=lambda part: part.start):
        length += max(part.end - max(part.start, reached), 0.0)
        reached = max(reached, part.end)
    return length


@pytest.mark.parametrize("is_known", [True, False])
@given(size=st.integers(30, 200), overlap=st.integers(0, 15))
@a_property
def test_a_span_is_carried_over_any_cut(is_known: bool, size: int, overlap: int) -> None:
    span = SPAN if is_known else nameless(SPAN)
    placed = place(span, cut(TEXT, size, "gym" if is_known else None, overlap))
    # A number or a word that a border cuts may leave too little to be sure; never a wrong place.
    assert placed.state in {SpanState.CARRIED, SpanState.EDITED, SpanState.UNCERTAIN}
    if placed.state is SpanState.CARRIED:
        assert covered_share(placed) == pytest.approx(1, abs=0.05)


@given(words=st.integers(6, 40))
@a_property
def test_a_span_is_carried_if_chunks_are_cut_at_words(words: int) -> None:
    pieces = re.findall(r"\S+\s*", TEXT)
    chunks = [Chunk(str(at), "".join(pieces[at : at + words]), "gym") for at in range(0, len(pieces), words)]
    placed = place(SPAN, chunks)
    assert placed.state is SpanState.CARRIED
    assert covered_share(placed) == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("is_known", [True, False])
@pytest.mark.parametrize("change", CHANGES)
def test_an_edited_span_is_flagged_over_any_cut(change: str, is_known: bool) -> None:
    text = TEXT.replace(FEE, CHANGES[change])
    for size in (64, 90, 128, 250):
        placed = place(SPAN if is_known else nameless(SPAN), cut(text, size, "gym" if is_known else None))
        assert placed.state is SpanState.EDITED, size
        assert placed.change
    assert re.search("became|was added|was removed", place(SPAN, cut(text, 500)).change or "")


def test_layout_case_and_punctuation_do_not_count() -> None:
    text = TEXT.replace(FEE, f"**{FEE.upper()}**").replace(" ", "\n  ")
    assert place(SPAN, cut(text, 500)).state is SpanState.CARRIED


def test_evidence_in_another_document_is_not_carried() -> None:
    others = cut(f"Rules elsewhere. {FEE}", 500, "spa")
    gone = cut(TEXT.replace(FEE, ""), 500)
    moved = place(SPAN, [*gone, *others])
    assert (moved.state, moved.change) == (SpanState.UNCERTAIN, "its words are in another document, 'spa'")
    near = place(SPAN, [*gone, *cut(f"Rules elsewhere. {CHANGES['name']}", 500, "spa")])
    assert (near.state, near.change) == (SpanState.EDITED, "its document no longer says so in these words")
    assert place(SPAN, others[:0] + cut("Nothing of the kind here.", 500, "spa")).state is SpanState.LOST
    assert place(SPAN, [*cut(TEXT, 500), *others]).state is SpanState.CARRIED


def test_words_at_two_places_are_uncertain_unless_the_place_is_known() -> None:
    twice = f"{TEXT} In the other building it is the same. {FEE} Bring a towel of your own."
    assert place(replace(SPAN, start=None, end=None), cut(twice, 160)).state is SpanState.UNCERTAIN
    assert place(nameless(SPAN), cut(twice, 160, None)).state is SpanState.UNCERTAIN
    at_start = place(SPAN, cut(twice, 160))
    assert at_start.state is SpanState.CARRIED
    assert {part.passage for part in at_start.parts} == {"gym-160-0"}


HERE = replace(nameless(SPAN), before="posted at the door of each hall.", after="Lunch is served at noon")
"""The span as it is known by its text and the words beside it."""
ELSEWHERE = f"In the other building it is the same. {FEE} Bring a towel of your own."
FAR = "The halls are cleaned each night. " * 20


def test_the_words_beside_a_span_tell_its_place_from_others() -> None:
    placed = place(HERE, cut(f"{TEXT} {FAR} {ELSEWHERE}", 160, None))
    assert (placed.state, placed.parts[0].passage) == (SpanState.CARRIED, "None-160-0")
    assert {part.passage for part in placed.parts} <= {"None-160-0", "None-160-160"}
    gone = place(HERE, cut(f"{TEXT.replace(FEE, '')} {FAR} {ELSEWHERE}", 160, None))
    assert (gone.state, gone.change) == (SpanState.UNCERTAIN, "other words stand beside it than before")
    edited = TEXT.replace("Lunch is served", "Dinner is served")
    assert place(HERE, cut(f"{edited} {FAR} {ELSEWHERE}", 160, None)).state is SpanState.CARRIED


@pytest.mark.parametrize("size", [60, 80, 130, 200, 400])
def test_the_words_beside_a_span_are_kept_and_find_it_in_other_chunks(size: int) -> None:
    known = place(nameless(SPAN), cut(TEXT, 400, None)).span
    assert known.before.endswith("door of each hall")
    assert known.after.startswith("lunch is served")
    assert place(known, cut(f"{ELSEWHERE} {FAR} {TEXT}", size, None)).state is SpanState.CARRIED


def test_a_document_is_trusted_before_the_words_beside_a_span() -> None:
    moved = replace(HERE, document="gym", before="quite other words before it", after="and quite others after it")
    assert place(moved, cut(TEXT, 160)).state is SpanState.CARRIED


def test_the_beginning_of_a_span_at_the_border_of_a_chunk_is_no_other_place() -> None:
    chunks = [Chunk("a", TEXT), Chunk("b", f"{FAR} Members of the gym in Delft"), Chunk("c", "can swim on Mondays.")]
    placed = place(nameless(SPAN), chunks)
    assert (placed.state, [part.passage for part in placed.parts]) == (SpanState.CARRIED, ["a"])


def test_an_edit_is_not_hidden_by_the_same_words_elsewhere() -> None:
    edited = f"{TEXT.replace(FEE, CHANGES['number'])} {FAR} For the other building: {FEE} Bring a towel."
    placed = place(SPAN, cut(edited, 200))
    assert placed.state is SpanState.UNCERTAIN
    assert placed.change == "perhaps edited, and repeated elsewhere: '40' became '45'"


@pytest.mark.parametrize("document", [None, "gym"])
def test_a_near_duplicate_leaves_a_span_that_stands_between_its_own_words(document: str | None) -> None:
    """The manuals of two halls differ in the fee alone: the text stands once, and its words are beside it."""
    known = replace(place(nameless(SPAN), cut(TEXT, 400, None)).span, document=document)
    other = [replace(each, id=f"other {each.id}") for each in cut(TEXT.replace(FEE, CHANGES["number"]), 400, None)]
    for order in (1, -1):
        chunks = [part for parts in [cut(TEXT, 400, document), other][::order] for part in parts]
        placed = place(known, chunks)
        assert (placed.state, [part.passage.startswith("other") for part in placed.parts]) == (
            SpanState.CARRIED,
            [False],
        )
    moved = place(known, [*cut(f"{FAR} {FEE} {FAR}", 400, document), *other])
    assert moved.state is not SpanState.CARRIED or document is not None, "among other words, it may be another text"


def test_overlapping_chunks_are_one_place() -> None:
    chunks = [Chunk(str(at), TEXT[at : at + 160]) for at in (0, 20, 40)]
    placed = place(nameless(SPAN), chunks)
    assert placed.state is SpanState.CARRIED
    assert [part.passage for part in placed.parts if part.end - part.start == 1] == ["0", "20", "40"]


def test_of_some_passages_it_is_not_known_what_the_others_hold() -> None:
    assert place(SPAN, cut("Nothing of the kind here at all.", 500), is_complete=False).state is SpanState.UNSEEN
    half = TEXT[: TEXT.index("a year")]
    placed = place(SPAN, [Chunk("a", half)], is_complete=False)
    assert placed.state is SpanState.CARRIED
    assert 0.3 < covered_share(placed) < 0.7


def test_a_short_text_is_carried_as_a_whole_chunk_only() -> None:
    short = EvidenceSpan("40 euros")
    assert place(short, [Chunk("a", "40 Euros.")]).state is SpanState.CARRIED
    assert place(short, [Chunk("a", "It costs 40 euros.")]).state is SpanState.UNCERTAIN


def test_scripts_without_spaces_are_found() -> None:
    span = EvidenceSpan("会員の年会費は四十ユーロです")
    text = "営業時間は入口に掲示されています。会員の年会費は四十ユーロです。昼食は正午に出ます。"
    assert place(span, [Chunk("a", text)]).state is SpanState.CARRIED
    assert place(span, [Chunk("a", text.replace("四十", "五十"))]).state is SpanState.EDITED
