"""Places are selected, joined and replaced as lists of places would be."""

from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tasks.rows.placed_rows import PlacedRows, Segment

PLACES = st.lists(
    st.none()
    | st.tuples(st.sampled_from("abc"), st.integers(0, 9), st.integers(0, 3), st.binary(min_size=16, max_size=16))
)
"""Lists of places: segment, first row, number of rows and digest; None if the result is missing."""


def placed_rows(places: Sequence[tuple[str, int, int, bytes] | None]) -> PlacedRows:
    """Return the places, each from an object of its own."""
    return PlacedRows.concat(
        [
            PlacedRows.nothing(1)
            if place is None
            else PlacedRows(
                (Segment("unused"), Segment(place[0])),
                np.array([1], np.int32),
                np.array([place[1]], np.int32),
                np.array([place[2]], np.int32),
                np.array([np.void(place[3])]),
            )
            for place in places
        ]
    )


def places_of(placed: PlacedRows) -> list[tuple[str, int, int, bytes] | None]:
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
