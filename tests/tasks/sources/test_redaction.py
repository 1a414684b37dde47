"""Redaction: all texts of a row, wherever they are, before anything reads them; a failure is said without the text."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import datasets
import pandas as pd
import pyarrow as pa
import pytest

from metric_core.errors import BadRowsError, PluginError, SourceError
from tasks.plugins.load_object import load_object
from tasks.sources import SourceOptions, read_samples
from tasks.sources.in_memory import save_rows
from tasks.sources.readers.bad_rows import InvalidRowError
from tasks.sources.redaction import Redaction

SECRET = "CARD-4929"


@pytest.fixture
def privacy(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Yield the module name of functions that redact."""
    module = ModuleType("privacy_of_tests")
    calls: list[str] = []

    def redact(text: str) -> str:
        calls.append(text)
        return re.sub(r"CARD-\d+", "[card]", text)

    def fail(text: str) -> str:
        raise ValueError(text)

    vars(module).update(
        redact=redact, fail=fail, calls=calls, number=7, none=lambda _: None, double=lambda text: text + "!"
    )
    monkeypatch.setitem(sys.modules, module.__name__, module)
    load_object.cache_clear()
    yield module.__name__
    load_object.cache_clear()


def read(rows: list[dict[str, Any]], tmp_path: Path, **options: Any) -> tuple[list[dict[str, Any]], list[str]]:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    reader = read_samples(str(path), SourceOptions(**options), {})
    return [row for table in reader for row in table.to_pylist()], [str(bad) for bad in reader.bad_rows]


def test_all_texts_of_a_row_are_redacted_wherever_they_are(privacy: str, tmp_path: Path) -> None:
    row = {
        "id": f"a {SECRET}",
        "user_input": f"Is {SECRET} mine?",
        "retrieved_contexts": ["None.", f"{SECRET} is."],
        "notes": {f"of {SECRET}": [{"deep": SECRET}, 3, None]},
    }
    (sample,), _ = read([row], tmp_path, redact=f"{privacy}:redact")
    assert sample["row_id"] == "a [card]"
    assert sample["user_input"] == "Is [card] mine?"
    assert sample["retrieved_contexts"] == ["None.", "[card] is."]
    assert json.loads(sample["extras"]) == {"notes": {"of [card]": [{"deep": "[card]"}, 3, None]}}


def test_ids_derived_from_content_do_not_tell_redacted_texts_apart(privacy: str, tmp_path: Path) -> None:
    ids = set()
    for number in (1, 2):
        (sample,), _ = read([{"response": f"CARD-{number}"}], tmp_path, redact=f"{privacy}:redact")
        ids.add(sample["row_id"])
    assert len(ids) == 1


def test_messages_about_bad_rows_are_redacted(privacy: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    lines = ['{"user_input": "fine"}', f'{{"{SECRET}": 1, "{SECRET}": 2}}', f'{{"user_input": {{"a": "{SECRET}"}}}}']
    path.write_text("\n".join(lines), encoding="utf-8")
    reader = read_samples(str(path), SourceOptions(redact=f"{privacy}:redact", on_bad_row="skip"), {})
    assert sum(table.num_rows for table in reader) == 1
    assert [bad.number for bad in reader.bad_rows] == [2, 3]
    assert "'[card]' is given twice" in str(reader.bad_rows[0])
    assert SECRET not in str(reader.bad_rows)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("fail", r"redact \(\w+:fail\) raised ValueError"),
        ("none", r"redact \(\w+:none\) returned NoneType, wanted a text"),
        ("double", "changes a text that it has already redacted"),
    ],
)
def test_a_row_whose_redaction_fails_is_a_bad_row_and_its_text_is_not_quoted(
    privacy: str, tmp_path: Path, name: str, problem: str
) -> None:
    with pytest.raises(BadRowsError, match=problem) as caught:
        read([{"user_input": SECRET}], tmp_path, redact=f"{privacy}:{name}")
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None


def test_a_message_whose_redaction_fails_loses_its_details(privacy: str) -> None:
    assert SECRET not in Redaction(f"{privacy}:fail").message(f"got {SECRET}")


@pytest.mark.parametrize(
    ("name", "problem"), [("number", "is int, wanted a function"), ("absent", "has no attribute 'absent'")]
)
def test_a_name_of_no_function_is_refused_before_a_row_is_read(
    privacy: str, tmp_path: Path, name: str, problem: str
) -> None:
    with pytest.raises(PluginError, match=problem):
        read([{"user_input": "a"}], tmp_path, redact=f"{privacy}:{name}")


def test_a_passage_of_many_rows_is_redacted_once(privacy: str, tmp_path: Path) -> None:
    read([{"id": str(i), "response": "All of it."} for i in range(5)], tmp_path, redact=f"{privacy}:redact")
    assert sys.modules[privacy].calls.count("All of it.") == 1


@pytest.mark.parametrize("made", [list, pd.DataFrame, pa.Table.from_pylist, datasets.Dataset.from_list])
def test_data_in_memory_is_redacted_before_it_is_saved(privacy: str, tmp_path: Path, made: Any) -> None:
    rows = [{"user_input": f"Is {SECRET} mine?", "retrieved_contexts": [SECRET], "votes": 3}]
    path = save_rows(made(rows), str(tmp_path), f"{privacy}:redact")
    (sample,) = [row for table in read_samples(path, SourceOptions(), {}) for row in table.to_pylist()]
    assert (sample["user_input"], sample["retrieved_contexts"]) == ("Is [card] mine?", ["[card]"])
    assert json.loads(sample["extras"]) == {"votes": 3}
    for file in tmp_path.rglob("*.*"):
        assert SECRET.encode() not in file.read_bytes()


def test_data_in_memory_that_cannot_be_redacted_is_refused_with_the_row(privacy: str, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="row 1 of the data cannot be evaluated: redact"):
        save_rows([{"user_input": SECRET}], str(tmp_path), f"{privacy}:fail")
    assert list(tmp_path.rglob("*.jsonl")) == []


def test_a_value_that_is_nested_too_deeply_makes_its_row_bad(privacy: str) -> None:
    nested: Any = SECRET
    for _ in range(10_000):
        nested = [nested]
    with pytest.raises(InvalidRowError, match="nested too deeply"):
        Redaction(f"{privacy}:redact").row({"a": nested})


def test_bytes_are_redacted_as_text(privacy: str) -> None:
    assert Redaction(f"{privacy}:redact").row({"a": SECRET.encode()}) == {"a": b"[card]"}


def test_an_error_of_a_text_names_no_text(privacy: str) -> None:
    with pytest.raises(InvalidRowError) as caught:
        Redaction(f"{privacy}:fail").text(SECRET)
    assert SECRET not in caught.value.problem


def test_nested_columns_are_redacted(privacy: str, tmp_path: Path) -> None:
    nested = {"inputs": {"question": f"Is {SECRET} mine?"}}
    (sample,), _ = read([nested], tmp_path, redact=f"{privacy}:redact", column_map={"inputs.question": "user_input"})
    assert sample["user_input"] == "Is [card] mine?"
    assert SECRET not in json.dumps(sample)
