"""Columns of passages that are plain text: one passage, or several with a separator."""

import json
from pathlib import Path
from typing import Any

import pytest

from metric_core.errors import BadRowsError, ConfigError, SourceError
from tasks.sources import SourceOptions
from tests.tasks.sources.helpers import column, read, write_lines

ROW = {"question": "Why?", "answer": "So."}
PLAIN = "It rains. | It pours, [1] says. |  | (So.)"
SPLIT = ["It rains.", "It pours, [1] says.", "(So.)"]


@pytest.mark.parametrize(
    ("separator", "given", "wanted"),
    [
        ("none", PLAIN, [PLAIN]),
        ("|", PLAIN, SPLIT),
        (r"\n\n", "It rains.\n\nIt pours.\nToo.", ["It rains.", "It pours.\nToo."]),
        ("|", "It rains.", ["It rains."]),
        ("none", '["a | b", "c"]', ["a | b", "c"]),
        ("|", '["a | b", "c"]', ["a | b", "c"]),
        ("none", ["a", "b"], ["a", "b"]),
        ("|", "[Document(page_content='a | b', metadata={})]", ["a | b"]),
    ],
)
@pytest.mark.parametrize("ending", ["jsonl", "csv"])
def test_texts_are_split(separator: str, given: Any, wanted: list[str], ending: str, tmp_path: Path) -> None:
    rows = [{**ROW, "contexts": given, "reference_contexts": given}]
    path = tmp_path / f"log.{ending}"
    if ending == "csv":
        cell = '"' + (given if isinstance(given, str) else json.dumps(given)).replace('"', '""') + '"'
        path.write_text(f"question,answer,contexts,reference_contexts\nWhy?,So.,{cell},{cell}\n")
    else:
        write_lines(path, rows)
    _, table = read(path, {}, passage_separator=separator)
    assert column(table, "retrieved_contexts") == column(table, "reference_contexts") == [wanted]


def test_ids_are_split_with_the_passages(tmp_path: Path) -> None:
    rows = [{**ROW, "contexts": "a|b", "retrieved_context_ids": "d1|d2"}]
    _, table = read(write_lines(tmp_path / "log.jsonl", rows), {}, passage_separator="|")
    assert column(table, "retrieved_context_ids") == [["d1", "d2"]]


@pytest.mark.parametrize("value", [PLAIN, "{broken", "['a'"])
def test_without_the_option_a_text_is_refused_and_the_option_named(value: str, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "log.jsonl", [{**ROW, "contexts": value}, ROW])
    with pytest.raises(BadRowsError, match="--passage-separator none reads a text as one passage"):
        read(path, {})


def test_an_object_is_no_list_with_the_option_either(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "log.jsonl", [{**ROW, "contexts": '{"a": 1}'}])
    with pytest.raises(SourceError, match="got the object"):
        read(path, {}, passage_separator="none")


def test_an_empty_separator_is_refused() -> None:
    with pytest.raises(ConfigError, match="the separator is empty"):
        SourceOptions(passage_separator="")
