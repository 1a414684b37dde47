"""Results of rows are cut, joined and selected as lists of lists are, with the digest of each sample."""

from collections.abc import Mapping, Sequence
from random import Random

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from metric_core.stages import Stage
from tasks.rows.records import build_table
from tasks.rows.row_digests import digest_rows
from tasks.rows.stage_rows import StageRows, interleave
from tests.tasks.engine.small_runs import claims_table, verdicts_table

RESPONSES = st.lists(st.sampled_from(["", "one", "one two", "fails", "one fails three"]), max_size=7)


def name_rows(responses: Sequence[str], prefix: str = "r") -> dict[str, str]:
    return {f"{prefix}{number}": response for number, response in enumerate(responses)}


def results(rows: Mapping[str, str]) -> StageRows:
    return StageRows.from_table(Stage.CLAIMS, claims_table(rows), pa.array(list(rows), pa.string()))


def list_claims(rows: Mapping[str, str]) -> list[list[tuple[str, str]]]:
    """Return the row id and the text of each claim, sample by sample."""
    return [[(row_id, word) for word in response.split()] for row_id, response in rows.items()]


def content(found: StageRows) -> list[list[tuple[str, str]]]:
    """Return the row id and the text of each claim, sample by sample, of results whose digests are right."""
    assert found.digests.tobytes() == digest_rows(found.table, found.bounds, Stage.CLAIMS).tobytes()
    claims = list(zip(found.table["row_id"].to_pylist(), found.table["text"].to_pylist(), strict=True))
    assert len(claims) == found.bounds[-1]
    return [claims[start:end] for start, end in zip(found.bounds, found.bounds[1:], strict=False)]


@given(RESPONSES, st.randoms())
def test_results_are_sorted_by_sample(responses: Sequence[str], random: Random) -> None:
    rows = name_rows(responses)
    mixed = list(rows)
    random.shuffle(mixed)
    table = claims_table({row_id: rows[row_id] for row_id in mixed})
    assert content(StageRows.from_table(Stage.CLAIMS, table, pa.array(list(rows), pa.string()))) == list_claims(rows)


@given(RESPONSES, st.data())
def test_consecutive_samples_are_cut(responses: Sequence[str], data: st.DataObject) -> None:
    start, end = sorted(data.draw(st.tuples(*[st.integers(0, len(responses))] * 2)))
    assert content(results(name_rows(responses)).cut(start, end)) == list_claims(name_rows(responses))[start:end]


@given(RESPONSES, st.data())
def test_samples_are_selected_in_any_order(responses: Sequence[str], data: st.DataObject) -> None:
    everything = range(len(responses))
    positions = data.draw(st.permutations(everything))[: data.draw(st.integers(0, len(responses)))]
    found = results(name_rows(responses)).select(np.array(positions, np.int64))
    assert content(found) == [list_claims(name_rows(responses))[position] for position in positions]


@given(RESPONSES, RESPONSES, RESPONSES)
def test_parts_are_joined_in_their_order(first: Sequence[str], second: Sequence[str], third: Sequence[str]) -> None:
    parts = [name_rows(responses, prefix) for responses, prefix in ((first, "a"), (second, "b"), (third, "c"))]
    assert content(StageRows.concat([results(part) for part in parts])) == [
        sample for part in parts for sample in list_claims(part)
    ]


@given(RESPONSES, st.data())
def test_two_groups_are_put_into_one_order(responses: Sequence[str], data: st.DataObject) -> None:
    rows = name_rows(responses)
    is_first = data.draw(st.lists(st.booleans(), min_size=len(rows), max_size=len(rows)))
    groups = [
        {row: rows[row] for row, chosen in zip(rows, is_first, strict=True) if chosen is which}
        for which in (True, False)
    ]
    positions = np.flatnonzero(np.array(is_first, bool))
    assert content(interleave(results(groups[0]), positions, results(groups[1]))) == list_claims(rows)


@given(RESPONSES)
def test_a_sample_with_one_failed_answer_has_failed(responses: Sequence[str]) -> None:
    rows = name_rows(responses)
    found = StageRows.from_table(Stage.VERDICTS, verdicts_table(rows), pa.array(list(rows), pa.string()))
    assert found.find_failed(Stage.VERDICTS).tolist() == ["fails" in response for response in responses]


def test_a_failure_that_no_judge_caused_is_a_result() -> None:
    pair = {"pair": "question", "k": 0, "status": "failed", "reason": "no vector"}
    table = build_table(Stage.SIMILARITY, [{"row_id": "a", **pair}])
    found = StageRows.from_table(Stage.SIMILARITY, table, pa.array(["a", "b"]))
    assert found.find_failed(Stage.SIMILARITY).tolist() == [False, False]
