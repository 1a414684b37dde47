"""Exactly the rows that were stored are found, in any order, by any object."""

import pickle
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from metric_core.errors import AssayError
from tasks.rows.places import Places
from tasks.rows.row_store import RowStore
from tasks.runtime.usage import KindUsage, StageUsage
from tests.tasks.rows.row_results import RECIPE, STAGE, append, find, keys_of, questions_table

NAMES = st.sampled_from("abcdef")
RESULTS = st.dictionaries(NAMES, st.lists(st.text("xyz", max_size=2), max_size=3), max_size=5)
RECIPES = st.sampled_from([RECIPE, "another recipe"])


@given(
    st.lists(
        st.tuples(st.just("append"), RECIPES, RESULTS, st.lists(NAMES))
        | st.tuples(st.just("find"), RECIPES, st.lists(NAMES, unique=True))
        | st.tuples(st.just("open")),
        max_size=10,
    )
)
def test_a_store_is_a_mapping_whose_last_value_counts(steps: list[tuple]) -> None:  # type: ignore[type-arg] # any step
    expected: dict[tuple[str, str], list[str]] = {}
    with TemporaryDirectory() as root:
        stores = [RowStore(root)]
        for step in steps:
            if step[0] == "open":
                stores.append(RowStore(root))
            elif step[0] == "append":
                _, recipe, results, failed = step
                append(stores[-1], results, recipe, failed)
                expected |= {
                    (recipe, name): texts for name, texts in results.items() if not texts or name not in failed
                }
            else:
                _, recipe, names = step
                assert find(stores[-1], names, recipe) == {
                    name: expected[recipe, name] for name in names if (recipe, name) in expected
                }
        for recipe in (RECIPE, "another recipe"):
            everything = {name: texts for (of, name), texts in expected.items() if of == recipe}
            assert find(RowStore(root), sorted(everything), recipe) == everything


def test_appended_rows_are_returned_with_those_that_are_never_found(tmp_path: Path) -> None:
    results = {"a": ["Why?", "How?"], "b": [], "c": ["When?"]}
    for recipe, failed in ((RECIPE, ["a"]), (None, [])):
        store = RowStore(str(tmp_path / str(recipe)))
        placed = append(store, results, recipe, failed)
        assert store.read(STAGE, placed).equals(questions_table(results, failed))
        assert store.read(STAGE, placed.select(np.array([2, 0])), ["row_id", "text"]).to_pylist() == [
            {"row_id": "c", "text": "When?"},
            {"row_id": "a", "text": "Why?"},
            {"row_id": "a", "text": "How?"},
        ]
    assert find(RowStore(str(tmp_path / RECIPE)), ["a", "b", "c"]) == {"b": [], "c": ["When?"]}
    assert not list((tmp_path / "None").rglob("*.index"))


def test_places_are_sent_to_another_object(tmp_path: Path) -> None:
    placed = append(RowStore(str(tmp_path)), {"a": ["Why?"], "b": ["How?"]})
    sent = pickle.loads(pickle.dumps(placed.select(np.array([False, True]))))
    assert RowStore(str(tmp_path)).read(STAGE, sent)["text"].to_pylist() == ["How?"]


def test_a_store_that_is_only_read_finds_its_own_rows_and_writes_nothing(tmp_path: Path) -> None:
    append(RowStore(str(tmp_path)), {"a": ["Why?"], "b": ["How?"]})
    before = sorted(tmp_path.rglob("*"))
    store = RowStore(str(tmp_path), read_only=True)
    append(store, {"b": ["When?"], "c": ["Who?"]})
    assert find(store, ["a", "b", "c"]) == {"a": ["Why?"], "b": ["When?"], "c": ["Who?"]}
    assert sorted(tmp_path.rglob("*")) == before
    assert find(RowStore(str(tmp_path)), ["b", "c"]) == {"b": ["How?"]}


def test_found_rows_cost_their_share_of_cached_questions(tmp_path: Path) -> None:
    kinds = {"question": KindUsage(questions=5, requests=5, prompt_tokens=900)}
    usage = StageUsage(questions=5, requests=5, prompt_tokens=900, seconds=1.5, long_texts=3, kinds=kinds)
    append(RowStore(str(tmp_path)), {"a": ["1"], "b": ["2"], "c": ["3"]}, usage=usage)
    append(RowStore(str(tmp_path)), {"d": ["4"]}, usage=StageUsage(questions=7))
    store = RowStore(str(tmp_path))
    placed = store.find(STAGE, RECIPE, keys_of(["a", "b", "c", "d", "e"]))
    first = StageUsage(questions=5, stored=5, long_texts=3, kinds={"question": KindUsage(questions=5, stored=5)})
    assert store.usage_of([placed]) == first + StageUsage(questions=7, stored=7)
    assert store.usage_of([placed.select(np.array([0]))]).questions == round(5 / 3)
    assert RowStore(str(tmp_path)).usage_of([placed]) == store.usage_of([placed])  # found by another process


def test_a_segment_that_disappears_after_it_was_found_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    append(RowStore(str(tmp_path)), {"a": ["Why?"]})
    store = RowStore(str(tmp_path))
    placed = store.find(STAGE, RECIPE, keys_of(["a"]))
    (file,) = tmp_path.rglob("*.parquet")
    file.unlink()
    with pytest.raises(AssayError, match=r"rows of questions does not exist\. Run the evaluation again"):
        store.read(STAGE, placed)


def test_missing_rows_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="1 of the rows of questions to read are missing"):
        RowStore(str(tmp_path)).read(STAGE, Places.nothing(1))


@pytest.mark.parametrize("hours", [-5, -100_000])
def test_the_row_that_was_written_last_counts_although_the_clock_went_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hours: int
) -> None:
    append(RowStore(str(tmp_path)), {"a": ["Before?"], "b": ["Why?"]})
    now = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: now() + hours * 3_600_000_000_000)
    append(RowStore(str(tmp_path)), {"a": ["After?"]})
    assert find(RowStore(str(tmp_path)), ["a", "b"]) == {"a": ["After?"], "b": ["Why?"]}
    append(RowStore(str(tmp_path)), {"a": ["At last?"]})
    assert find(RowStore(str(tmp_path)), ["a"]) == {"a": ["At last?"]}
