"""The example data are consistent: passages are from the handbook, labels are right, pairs and versions compare."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
HANDBOOK = EXAMPLES / "handbook"
SECOND_HANDBOOK = HANDBOOK / "partners.md"
TEXT_FIELDS = ("id", "user_input", "response", "reference", "topic", "pair", "planted", "planted_span")
PLANTED = {
    "good": 21,
    "partly_wrong": 8,
    "unsupported": 5,
    "off_topic": 3,
    "shuffled": 3,
    "noise": 2,
    "near_miss": 2,
    "noncommittal": 2,
    "missing_context": 2,
}
WITH_SPAN = {"partly_wrong", "unsupported", "noise"}
CHANGES = {"same": 27, "reworded": 6, "improved": 8, "worse": 5, "passage": 2}

Row = dict[str, Any]


def _rows(name: str) -> list[Row]:
    return [json.loads(line) for line in (EXAMPLES / name).read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def first() -> list[Row]:
    return _rows("handbook.jsonl")


@pytest.fixture(scope="module")
def second() -> list[Row]:
    return _rows("handbook_v2.jsonl")


@pytest.fixture(scope="module")
def versions(first: list[Row], second: list[Row]) -> list[tuple[Row, Row]]:
    return list(zip(first, second, strict=True))


@pytest.fixture(scope="module")
def groups(first: list[Row]) -> dict[str, list[Row]]:
    found = defaultdict(list)
    for row in first:
        found[row["pair"]].append(row)
    return found


def _labelled(rows: list[Row], planted: str) -> Iterator[Row]:
    return (row for row in rows if row["planted"] == planted)


@pytest.mark.parametrize("name", ["handbook.jsonl", "handbook_v2.jsonl"])
def test_every_row_has_every_field(name: str) -> None:
    rows = _rows(name)
    assert len({row["id"] for row in rows}) == len(rows)
    extra = {"change"} if name == "handbook_v2.jsonl" else set()
    for row in rows:
        assert set(row) == {*TEXT_FIELDS, "retrieved_contexts"} | extra
        assert all(isinstance(row[field], str) for field in TEXT_FIELDS)
        assert all(row[field].strip() for field in TEXT_FIELDS if field != "planted_span")
        assert all(isinstance(passage, str) for passage in row["retrieved_contexts"])
        assert len(set(row["retrieved_contexts"])) == len(row["retrieved_contexts"])


def test_readme_has_the_number_of_rows_of_each_kind(first: list[Row]) -> None:
    assert Counter(row["planted"] for row in first) == PLANTED
    readme = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    for planted, count in PLANTED.items():
        assert f"| `{planted}` | {count} |" in readme


@pytest.mark.parametrize("name", ["handbook.jsonl", "handbook_v2.jsonl"])
def test_passages_are_cut_from_the_handbook(name: str) -> None:
    files = {path: path.read_text(encoding="utf-8") for path in HANDBOOK.glob("*.md")}
    noisy = {row["id"] for row in _labelled(_rows("handbook.jsonl"), "noise")}
    for row in _rows(name):
        homes = [[path for path, text in files.items() if passage in text] for passage in row["retrieved_contexts"]]
        assert all(len(found) == 1 for found in homes), row["id"]
        assert ([SECOND_HANDBOOK] in homes) == (row["id"] in noisy), row["id"]
        assert all(60 <= len(passage.split()) <= 150 for passage in row["retrieved_contexts"])
        assert len(row["retrieved_contexts"]) in (3, 4) or row["planted"] == "missing_context"


def test_pairs_share_a_question_and_start_with_a_good_answer(groups: dict[str, list[Row]]) -> None:
    assert sum(len(rows) > 1 for rows in groups.values()) >= 12
    for rows in groups.values():
        assert len({(row["user_input"], row["reference"], row["topic"]) for row in rows}) == 1
        if len(rows) > 1:
            assert [row["planted"] for row in rows].count("good") == 1
            assert rows[0]["planted"] == "good"


@pytest.mark.parametrize("name", ["handbook.jsonl", "handbook_v2.jsonl"])
def test_the_planted_span_is_in_the_answer_where_something_is_wrong(name: str) -> None:
    for row in _rows(name):
        assert bool(row["planted_span"]) == (row["planted"] in WITH_SPAN), row["id"]
        assert row["planted_span"] in row["response"]
        assert not row["planted_span"] or row["planted_span"] not in row["reference"]


def test_invented_answers_are_not_in_the_handbook() -> None:
    handbook = "\n".join(path.read_text(encoding="utf-8") for path in HANDBOOK.glob("*.md"))
    for name in ("handbook.jsonl", "handbook_v2.jsonl"):
        for row in _labelled(_rows(name), "unsupported"):
            assert row["planted_span"] == row["response"]
            assert row["response"] not in handbook


def test_a_noisy_claim_comes_from_the_second_handbook(first: list[Row]) -> None:
    wrong = {"hb-vacation-04": ("ten unused days", "30 June"), "hb-travel-02": ("260 Canadian dollars", "Paris")}
    second_handbook = SECOND_HANDBOOK.read_text(encoding="utf-8")
    assert {row["id"] for row in _labelled(first, "noise")} == set(wrong)
    assert all(fact in second_handbook for facts in wrong.values() for fact in facts)


def test_a_shuffled_row_is_its_good_partner_with_the_best_passage_last(
    first: list[Row], groups: dict[str, list[Row]]
) -> None:
    for row in _labelled(first, "shuffled"):
        good = groups[row["pair"]][0]
        assert row["response"] == good["response"]
        assert row["retrieved_contexts"][-1] == good["retrieved_contexts"][0]


def test_other_partners_differ_only_in_the_answer(first: list[Row], groups: dict[str, list[Row]]) -> None:
    for planted in ("partly_wrong", "unsupported", "off_topic", "near_miss"):
        for row in _labelled(first, planted):
            good = groups[row["pair"]][0]
            assert row["response"] != good["response"]
            assert row["retrieved_contexts"] == good["retrieved_contexts"]


def test_one_row_retrieved_nothing(first: list[Row]) -> None:
    assert [row["planted"] for row in first if not row["retrieved_contexts"]] == ["missing_context"]


def test_the_second_version_answers_the_same_questions(versions: list[tuple[Row, Row]]) -> None:
    for old, new in versions:
        assert all(old[field] == new[field] for field in ("id", "user_input", "reference", "topic", "pair"))
        assert (new["response"] == old["response"]) == (new["change"] in ("same", "passage")), old["id"]
        assert new["change"] != "same" or new["planted"] == old["planted"]
    assert Counter(new["change"] for _, new in versions) == CHANGES


def test_rebuilt_index_changed_one_passage_in_5_percent_of_rows(versions: list[tuple[Row, Row]]) -> None:
    changed = 0
    for old, new in versions:
        pairs = zip(old["retrieved_contexts"], new["retrieved_contexts"], strict=True)
        different = sum(one != other for one, other in pairs)
        assert different == (1 if new["change"] == "passage" else 0), old["id"]
        changed += different
    assert changed == round(0.05 * len(versions))


def test_improved_answers_become_good_and_worse_answers_were_good(versions: list[tuple[Row, Row]]) -> None:
    for old, new in versions:
        if new["change"] == "improved":
            assert (old["planted"] != "good", new["planted"]) == (True, "good")
        if new["change"] == "worse":
            assert (old["planted"], new["planted"] != "good") == ("good", True)
        if new["change"] == "reworded":
            assert (old["planted"], new["planted"]) == ("good", "good")


def test_the_examples_stay_small() -> None:
    written = (path for path in EXAMPLES.rglob("*") if path.is_file() and path.suffix != ".pyc")
    assert sum(path.stat().st_size for path in written) < 600_000
