"""Places are selected, joined and replaced as lists of places would be."""

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tasks.rows.places import Places, Segment

PLACES = st.lists(
    st.none()
    | st.tuples(st.sampled_from("abc"), st.integers(0, 9), st.integers(0, 3), st.binary(min_size=16, max_size=16))
)
"""Lists of places: segment, first row, number of rows and digest; None if the result is missing."""


def placed_rows(places: Sequence[tuple[str, int, int, bytes] | None]) -> Places:
    """Return the places, each from an object of its own."""
    return Places.concat(
        [
            Places.nothing(1)
            if place is None
            else Places(
                (Segment("unused"), Segment(place[0])),
                np.array([1], np.int32),
                np.array([place[1]], np.int32),
                np.array([place[2]], np.int32),
                np.array([np.void(place[3])]),
            )
            for place in places
        ]
    )


def places_of(placed: Places) -> list[tuple[str, int, int, bytes] | None]:
    columns = (placed.segment.tolist(), placed.start.tolist(), placed.count.tolist(), placed.digests)
    assert placed.missing.tolist() == [number < 0 for number in columns[0]]
    return [
        None if number < 0 else (placed.segments[number].path, start, count, bytes(digest))
        for number, start, count, digest in zip(*columns, strict=True)
    ]


@given(PLACES, st.data())
def test_places_behave_like_lists(places: list[tuple[str, int, int, bytes] | None], data: st.DataObject) -> None:
    placed = placed_rows(places)
    assert places_of(placed) == places
    chosen = data.draw(st.lists(st.integers(0, len(places) - 1)) if places else st.just([]))
    some = placed.select(np.array(chosen, np.int64))
    assert places_of(some) == [places[position] for position in chosen]
    assert len(some.segments) == len({place[0] for place in places_of(some) if place is not None})
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=len(places), max_size=len(places))), np.bool_)
    others = data.draw(
        st.lists(
            PLACES.map(lambda found: found[0] if found else None), min_size=int(mask.sum()), max_size=int(mask.sum())
        )
    )
    filled = placed.fill(mask, placed_rows(others))
    rest = iter(others)
    assert places_of(filled) == [
        next(rest) if is_other else place for place, is_other in zip(places, mask, strict=True)
    ]
    assert places_of(placed) == places
    assert places_of(placed.put(mask, placed_rows(others))) == places_of(filled)
    assert placed.digests.tobytes() == filled.digests.tobytes()  # the same arrays


def test_what_has_been_looked_up_stays_so() -> None:
    places = Places.concat([Places.nothing(2), placed_rows([("a", 0, 1, bytes(16)), None]).looked_up()])
    assert places.missing.tolist() == [True, True, False, True]
    assert places.unknown.tolist() == [True, True, False, False]
    assert places.select(np.array([3, 0])).unknown.tolist() == [False, True]
    assert places.fill(np.array([0, 2]), places.select(np.array([3, 3]))).unknown.tolist() == [
        False,
        True,
        False,
        False,
    ]
