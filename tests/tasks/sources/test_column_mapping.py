"""Mapping columns of a source to columns of a sample, and the errors for missing columns."""

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest

from metric_core.errors import ConfigError, SourceError
from tasks.sources import SourceOptions, all_columns, available_columns, read_samples
from tasks.sources.column_mapping import resolve_columns
from tests.tasks.sources.helpers import column, read, write_lines

ROW = {"user_input": "q", "response": "r", "retrieved_contexts": ["c"], "reference": "g"}


@pytest.mark.parametrize("question", ["question", "query", "user_query", "user_input", "Question", "USER_INPUT"])
def test_aliases_and_other_case(question: str, tmp_path: Path) -> None:
    row = {question: "q", "answer": "r", "contexts": ["c"], "ground_truth": "g"}
    path = write_lines(tmp_path / "log.jsonl", [row])
    reader, table = read(path, {"all": tuple(ROW)})
    assert table.select(list(ROW)).to_pylist() == [ROW]
    assert available_columns(path, SourceOptions()) == reader.columns == tuple(ROW)
    assert reader.warnings == []


def test_other_columns_come_after_those_of_samples(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "log.jsonl", [{"topic": "x", "answer": "r", "id": "a"}, {"asker": "ann"}])
    assert all_columns(path, SourceOptions()) == ("response", "topic", "id", "asker")


def test_the_map_takes_precedence_over_names_and_aliases(tmp_path: Path) -> None:
    rows = [ROW | {"gold": "right", "ground_truth": "left"}]
    reader, table = read(
        write_lines(tmp_path / "log.jsonl", rows), {"all": tuple(ROW)}, column_map={"gold": "reference"}
    )
    assert column(table, "reference") == ["right"]
    assert column(table, "extras") == ['{"reference": "g", "ground_truth": "left"}']
    assert reader.warnings == [
        "column 'reference' is kept in extras: 'reference' is read from 'gold'",
        "column 'ground_truth' is kept in extras: 'reference' is read from 'gold'",
    ]


def test_a_canonical_name_takes_precedence_over_an_alias() -> None:
    assert resolve_columns(["answer", "Response"], {}).bindings == {"response": "Response"}
    assert resolve_columns(["QUERY", "query"], {}).bindings == {"user_input": "query"}
    assert resolve_columns(["query", "question"], {}).bindings == {"user_input": "question"}


def test_a_mapped_column_means_nothing_else() -> None:
    assert resolve_columns(["response", "answer"], {"response": "reference"}).bindings == {
        "response": "answer",
        "reference": "response",
    }


def test_a_mapped_column_is_not_replaced_by_an_alias_in_rows_without_it(tmp_path: Path) -> None:
    rows = [{"response": "r", "gold": "g"}, {"response": "r", "ground_truth": "other"}]
    reader, _ = read(
        write_lines(tmp_path / "log.jsonl", rows),
        {"recall": ("reference",)},
        column_map={"gold": "reference"},
        on_bad_row="skip",
        empty_text="bad",
    )
    assert [(bad.number, bad.column) for bad in reader.bad_rows] == [(2, "reference")]


def test_an_alias_never_fills_in_for_the_column_itself(tmp_path: Path) -> None:
    rows = [{"user_input": "q", "answer": "gold"}, {"user_input": "q", "response": "r", "answer": "gold"}]
    _, table = read(write_lines(tmp_path / "log.jsonl", rows), {"any": ("response",)})
    assert column(table, "response") == [None, "r"]


def test_a_column_that_comes_late_causes_a_warning(tmp_path: Path) -> None:
    rows = [{"answer": f"r{n}"} for n in range(1200)] + [{"response": "r", "id": "x", "extra": 1}]
    reader, table = read(write_lines(tmp_path / "log.jsonl", rows), {"any": ("response",)})
    assert column(table, "response")[-2:] == ["r1199", "r"]
    assert column(table, "extras")[-1] == '{"id": "x", "extra": 1}'
    assert pa.concat_tables(list(reader)).equals(table)
    assert reader.warnings == [
        "'response' is read from 'response' from line 1201 on, and from 'answer' before",
        "the ids in 'id', a column from line 1201 on, are not used: earlier rows have none",
        "column 'answer' is kept in extras: 'response' is read from 'response'",
    ]


def test_a_needed_column_that_comes_late_is_found(tmp_path: Path) -> None:
    rows = [{"response": f"r{n}"} for n in range(1200)] + [{"response": "r", "reference": "g"}]
    path = write_lines(tmp_path / "log.jsonl", rows)
    assert available_columns(path, SourceOptions()) == ("response",)
    reader, table = read(path, {"recall": ("reference",)})
    assert column(table, "reference") == [None] * 1200 + ["g"]
    assert reader.warnings[-1] == "1,200 of 1,201 rows have no value in reference: recall is undefined there"


def test_generated_names_do_not_pile_up(tmp_path: Path) -> None:
    rows = [{"response": f"r{n}", f"key {n}": n} for n in range(3000)]
    reader, table = read(write_lines(tmp_path / "log.jsonl", rows), {"any": ("response",)})
    assert column(table, "extras")[-1] == '{"key 2999": 2999}'
    assert len(reader._seen.names) <= 1001


@pytest.mark.parametrize(("value", "wanted"), [(["one"], "one"), (["one", "two"], "one\ntwo"), ("one", "one")])
def test_several_reference_answers_are_joined(value: object, wanted: str, tmp_path: Path) -> None:
    needed = {"recall": ("reference",)}
    path = write_lines(tmp_path / "log.jsonl", [{"ground_truths": value}])
    assert column(read(path, needed)[1], "reference") == [wanted]
    (tmp_path / "log.csv").write_text(f'ground_truths,note\n"{value}",x\n')
    assert column(read(tmp_path / "log.csv", needed)[1], "reference") == [wanted]
    (tmp_path / "log.csv").write_text(f'Ground_Truths,note\n"{value}",x\n')
    assert column(read(tmp_path / "log.csv", needed)[1], "reference") == [wanted]


def test_a_missing_column_names_metrics_columns_and_a_solution(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "log.jsonl", [{"user_input": "q", "refrence": "g", "prompt_id": 1}])
    needed = {"recall": ("user_input", "reference"), "accuracy": ("reference", "response")}
    with pytest.raises(SourceError) as caught:
        read_samples(path, SourceOptions(), needed)
    way_out = (
        "It has: 'user_input', 'refrence', 'prompt_id'. If one of these is meant, map it: "
        "column_map = {'refrence': 'reference'}, or --column-map refrence=reference"
    )
    assert str(caught.value).splitlines() == [
        f"{path} lacks columns that the metrics need:",
        "  'response', for accuracy",
        "  'reference', for recall, accuracy (did you mean its column 'refrence'?)",
        way_out,
    ]


def test_a_source_without_any_column_of_a_sample_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("prompt text,answer given\na,b\n", encoding="utf-8")
    with pytest.raises(SourceError, match="it has: 'prompt text', 'answer given'") as refused:
        available_columns(path, SourceOptions())
    assert "--column-map 'answer given=response'" in str(refused.value)


def test_names_like_an_alias_are_suggested(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "log.jsonl", [{"questions": "q"}])
    with pytest.raises(SourceError, match="did you mean its column 'questions'"):
        read_samples(path, SourceOptions(), {"any": ("user_input",)})


def test_a_mapped_column_must_exist(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "log.jsonl", [{"gold": "g"}])
    with pytest.raises(SourceError, match=r"has no column 'golf' to map; it has: 'gold'. Did you mean 'gold'\?"):
        read_samples(path, SourceOptions(column_map={"golf": "reference"}), {})


@pytest.mark.parametrize(
    ("column_map", "message"),
    [
        ({"gold": "refrence"}, "Did you mean 'reference'?"),
        ({"gold": "ground_truth"}, "Did you mean 'reference'?"),
        ({"gold": "zzz"}, "There are: 'user_input', 'response'"),
        ({"uid": "row_id"}, "set id_column to 'uid'"),
        ({"reference": "gold"}, "name in the data comes first: {'gold': 'reference'}"),
        ({"gold": "reference", "best": "reference"}, "for two columns, 'gold', 'best'"),
    ],
)
def test_a_column_map_must_name_sample_columns(column_map: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        SourceOptions(column_map=column_map)
    assert message in str(caught.value)


def test_metrics_can_need_only_sample_columns(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "log.jsonl", [ROW])
    with pytest.raises(ConfigError, match="mine needs the column 'history'"):
        read_samples(path, SourceOptions(), {"mine": ("history",)})


@pytest.mark.parametrize("header", ["response,response", "response,a,a"])
def test_two_columns_of_one_name_are_refused(header: str, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(f"{header}\nx,y,z\n")
    with pytest.raises(SourceError, match="two columns named"):
        read_samples(tmp_path / "log.csv", SourceOptions(), {})


def test_a_column_whose_name_cannot_be_printed_is_escaped(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    path.write_bytes(rb'{"half \ud800": "a"}')
    with pytest.raises(SourceError, match="none of the columns") as caught:
        read(path, {})
    assert rb"--column-map 'half \ud800=user_input'" in str(caught.value).encode()


def warnings(tmp_path: Path, row: Mapping[str, object], **options: object) -> list[str]:
    return read(write_lines(tmp_path / "log.jsonl", [row]), {}, **options)[0].warnings


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("context", "retrieved_contexts"),
        ("Source Documents", "retrieved_contexts"),
        ("retrievalContext", "retrieved_contexts"),
        ("retrieved-contexts", "retrieved_contexts"),
        ("expected_output", "reference"),
        ("Ground Truth", "reference"),
        ("gold_contexts", "reference_contexts"),
        ("doc_ids", "retrieved_context_ids"),
    ],
)
def test_columns_that_look_like_others_are_suggested_though_some_match(name: str, meant: str, tmp_path: Path) -> None:
    row = {"question": "Why?", "answer": "So.", name: ["x"], "notes": "a", "id": 1, "label": "b"}
    quoted = f"'{name}={meant}'" if " " in name else f"{name}={meant}"
    assert warnings(tmp_path, row) == [f"column {name!r} looks like {meant}: --column-map {quoted}"]
    assert warnings(tmp_path, {**row, meant: ["y"] if meant != "reference" else "y"}) == []
    value = "x" if meant == "reference" else ["x"]
    assert warnings(tmp_path, {**row, name: value}, column_map={name: meant}) == []


def test_the_likelier_of_two_columns_is_suggested(tmp_path: Path) -> None:
    row = {"question": "Why?", "answer": "So.", "context": ["Geography"], "retrieval_context": ["Delft."]}
    [found] = warnings(tmp_path, row)
    assert "'retrieval_context' looks like retrieved_contexts" in found


def test_names_in_use_are_suggested_where_none_matches(tmp_path: Path) -> None:
    row = {
        "input": "Why?",
        "actualOutput": "So.",
        "expected_output": "So",
        "retrieval_context": ["It is."],
        "context": ["x"],
    }
    path = write_lines(tmp_path / "log.jsonl", [row])
    with pytest.raises(SourceError) as caught:
        read_samples(path, SourceOptions(), {})
    pairs = "input=user_input,actualOutput=response,retrieval_context=retrieved_contexts,expected_output=reference"
    assert str(caught.value).endswith(f"--column-map {pairs}")
    with pytest.raises(SourceError, match="did you mean its column 'expected_output'"):
        read_samples(path, SourceOptions(), {"recall": ("reference",)})


def test_paths_into_objects_are_suggested_where_no_column_matches(tmp_path: Path) -> None:
    row = {"inputs": {"question": "Why?"}, "outputs": {"answer": "So.", "docs": [{"text": "It is."}]}}
    with pytest.raises(SourceError) as caught:
        read_samples(write_lines(tmp_path / "log.jsonl", [row]), SourceOptions(), {})
    pairs = "inputs.question=user_input,outputs.answer=response,outputs.docs=retrieved_contexts"
    assert str(caught.value).endswith(f"--column-map {pairs}")
    columns = dict(pair.split("=") for pair in pairs.split(","))
    _, table = read(tmp_path / "log.jsonl", {}, column_map=columns)
    assert column(table, "retrieved_contexts") == [["It is."]]
