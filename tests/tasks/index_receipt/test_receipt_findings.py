"""The receipts of two versions of an index say what was lost, added, edited, doubled, moved or damaged."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from metric_core.errors import ConfigError, SourceError
from tasks.index_receipt import index_comparison
from tasks.index_receipt.index_comparison import CheckedIndex, CheckRequest, check_index
from tasks.index_receipt.receipt import find_receipt
from tasks.options.source_options import SourceOptions
from tasks.sources.chunk_file import IndexChunk, read_index
from tasks.sources.sample_reader import read_samples

HANDBOOK = Path(__file__).parents[3] / "examples" / "handbook"
Index = list[dict[str, Any]]
Change = Callable[[dict[str, Any]], dict[str, Any] | None]

GERMAN = "Die Reise wird von der Leitung genehmigt. Wer ein Zimmer bucht, legt eine Rechnung vor. " * 4
MENU = "Home | Products | Support | Sign in to your account "
MARKUP = "<p>{}</p><br/><ul><li>&nbsp;</li></ul>"


def handbook() -> Index:
    return [
        {
            "id": f"{path.name}#{number}",
            "document": path.name,
            "text": section.strip(),
            "title": "Handbook",
            "updated_at": "2026-02-01",
            "acl": ["all", "hr"],
            "embedding_model": "minilm",
        }
        for path in sorted(HANDBOOK.glob("*.md"))
        for number, section in enumerate(path.read_text(encoding="utf-8").split("\n## "))
    ]


def recut(index: Index, size: int, overlap: int = 0) -> Index:
    """Cut the documents of an index after so many characters."""
    found: Index = []
    for document in dict.fromkeys(row["document"] for row in index):
        rows = [row for row in index if row["document"] == document]
        text = "\n".join(row["text"] for row in rows)
        starts = range(0, len(text) - overlap, size - overlap)
        found += ({**rows[0], "id": f"{document}@{each}", "text": text[each : each + size]} for each in starts)
    return found


def write(path: Path, index: Index) -> str:
    path.write_text("\n".join(map(json.dumps, index)), encoding="utf-8")
    return str(path)


def check(folder: Path, old: Index, new: Index, **options: Any) -> CheckedIndex:
    addresses = write(folder / "old.jsonl", old), write(folder / "new.jsonl", new)
    return check_index(CheckRequest([addresses[1]], [addresses[0]], **options))


def change(index: Index, documents: str, change: Change) -> Index:
    """Change the chunks of the documents that begin with some letter."""
    found = (change(row) if row["document"][0] in documents else row for row in index)
    return [row for row in found if row is not None]


def kinds(checked: CheckedIndex) -> dict[str, int]:
    return {each.kind: each.count for each in checked.findings}


FAULTS: dict[str, tuple[Change, dict[str, int]]] = {
    "lost": (lambda _: None, {"lost": 1}),
    "moved": (lambda row: {**row, "document": f"new/{row['document']}"}, {"moved": 1}),
    "edited": (lambda row: {**row, "text": row["text"].replace("days", "weeks")}, {"edited": 1}),
    "empty": (lambda row: {**row, "text": None}, {"empty": 4, "edited": 1}),
    "encoding": (lambda row: {**row, "text": f"FranÃ§ois â€œ{row['text']}"}, {"mangled": 1, "edited": 1}),
    "markup": (lambda row: {**row, "text": MARKUP.format(row["text"])}, {"mangled": 1, "edited": 1}),
    "titles": (lambda row: {**row, "title": ""}, {"metadata": 1}),
    "unprotected": (lambda row: {**row, "acl": []}, {"unprotected": 1, "metadata": 1}),
    "permissions": (lambda row: {**row, "acl": ["all"]}, {"permissions": 1}),
    "older": (lambda row: {**row, "updated_at": "2025-12-31T10:00:00Z"}, {"older": 1}),
    "language": (
        lambda row: {**row, "document": "reise.md", "text": f"{GERMAN}{row['id']}"},
        {"language": 1, "lost": 1, "added": 1},
    ),
    "embedder": (lambda row: {**row, "embedding_model": "e5"}, {"embedder": 1}),
}


@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_is_named_and_nothing_else(name: str, tmp_path: Path) -> None:
    plant, expected = FAULTS[name]
    found = kinds(check(tmp_path, handbook(), change(handbook(), "t", plant)))
    assert found.keys() - {"doubled"} == expected.keys()
    if name != "language":
        assert {kind: found[kind] for kind in expected} == expected


def test_truncated_chunks_are_named_with_their_documents(tmp_path: Path) -> None:
    index = [{**row, "text": f"{row['text'].rstrip('.')}."} for row in handbook()]
    checked = check(tmp_path, index, change(index, "t", lambda row: {**row, "text": row["text"][:120].rstrip(".:,")}))
    truncated = next(each for each in checked.findings if each.kind == "truncated")
    assert truncated.examples == ("travel.md",)
    assert truncated.is_beyond


def test_a_menu_on_every_page_is_no_edit_alone(tmp_path: Path) -> None:
    checked = check(tmp_path, handbook(), [{**row, "text": MENU + row["text"]} for row in handbook()])
    (mangled,) = (each for each in checked.findings if each.kind == "mangled")
    assert "12 begin alike" in mangled.sentence


@pytest.mark.parametrize("rename", [True, False])
def test_doubled_documents_are_neither_added_nor_edited(rename: bool, tmp_path: Path) -> None:
    twice = [row for row in handbook() if row["document"] == "travel.md"]
    if rename:
        twice = [{**row, "document": "copy.md"} for row in twice]
    assert kinds(check(tmp_path, handbook(), [*handbook(), *twice])) == {"doubled": 1}
    assert kinds(check(tmp_path, handbook(), [*twice, *handbook()])) == {"doubled": 1}


@pytest.mark.parametrize(("size", "overlap"), [(300, 0), (900, 0), (400, 80), (250, 50)])
def test_a_plain_rechunking_is_named_as_such(size: int, overlap: int, tmp_path: Path) -> None:
    checked = check(tmp_path, handbook(), recut(handbook(), size, overlap))
    assert checked.is_plain_rechunking
    assert not checked.beyond
    again = check(tmp_path, recut(handbook(), 500, 100), recut(handbook(), size, overlap))
    assert again.is_plain_rechunking


def test_an_edit_is_found_although_all_is_cut_otherwise(tmp_path: Path) -> None:
    edited = change(handbook(), "t", lambda row: {**row, "text": row["text"].replace("190", "210")})
    checked = check(tmp_path, handbook(), recut(edited, 400, 80))
    assert {each.kind: each.examples for each in checked.findings}["edited"] == ("travel.md",)


def test_an_equal_index_has_changed_in_nothing(tmp_path: Path) -> None:
    wrapped = [
        {**row, "id": f"new-{row['id']}", "text": row["text"].replace(" ", "\n")} for row in reversed(handbook())
    ]
    assert check(tmp_path, handbook(), wrapped).findings == ()


def test_a_sign_that_was_edited_is_no_other_cut(tmp_path: Path) -> None:
    old = [{"id": "1", "document": "a", "text": "The balance of the account at the end of the year: -5 euros."}]
    new = [{**old[0], "text": old[0]["text"].replace("-5", "5")}]
    assert kinds(check(tmp_path, old, new)) == {"edited": 1}


def test_chunks_in_any_order_that_are_cut_otherwise_are_not_called_edited(tmp_path: Path) -> None:
    loose = sorted(recut(handbook(), 300, 60), key=lambda row: row["text"])
    found = kinds(check(tmp_path, handbook(), loose))
    assert "edited" not in found
    assert found["unordered"] == 12


def test_a_receipt_is_read_as_it_was_written(tmp_path: Path) -> None:
    address = write(tmp_path / "old.jsonl", handbook())
    receipt = check_index(CheckRequest([address])).receipt
    receipt.write(tmp_path / "index.receipt")
    assert check_index(CheckRequest([address], [str(tmp_path / "index.receipt")])).findings == ()
    read = find_receipt(str(tmp_path / "index.receipt"))
    assert read is not None
    assert (read.names, read.facts) == (receipt.names, receipt.facts)
    lost = write(tmp_path / "new.jsonl", change(handbook(), "t", lambda _: None))
    assert kinds(check_index(CheckRequest([lost], [str(tmp_path / "index.receipt")]))) == {"lost": 1}
    assert find_receipt(address) is None


def test_an_index_may_lie_in_several_files_of_any_format(tmp_path: Path) -> None:
    old, half = write(tmp_path / "old.jsonl", handbook()), len(handbook()) // 2
    pq.write_table(pa.Table.from_pylist(handbook()[:half]), tmp_path / "1.parquet")
    points = [
        {"id": row["id"], "payload": {"page_content": row["text"], "metadata": {**row, "text": None}}, "vector": [0.5]}
        for row in handbook()[half:]
    ]
    (tmp_path / "2.json").write_text(json.dumps(points), encoding="utf-8")
    new = [str(tmp_path / "1.parquet"), str(tmp_path / "2.json")]
    assert [each.kind for each in check_index(CheckRequest(new, [old])).findings] == ["embedder"]


def test_a_first_index_is_checked_by_itself(tmp_path: Path) -> None:
    index = [*handbook(), *handbook()[:4], {"id": "x", "document": "x", "text": ""}]
    checked = check_index(CheckRequest([write(tmp_path / "new.jsonl", index)]))
    assert kinds(checked) == {"doubled": 1, "empty": 1}


def test_limits_decide_what_is_beyond(tmp_path: Path) -> None:
    lost = change(handbook(), "t", lambda _: None)
    assert [each.kind for each in check(tmp_path, handbook(), lost).beyond] == ["lost"]
    assert check(tmp_path, handbook(), lost, limits={"lost": 0.1}).beyond == ()
    with pytest.raises(ConfigError, match="Did you mean lost"):
        check(tmp_path, handbook(), lost, limits={"lsot": 0.1})
    with pytest.raises(ConfigError, match="between 0 and 1"):
        check(tmp_path, handbook(), lost, limits={"lost": 2})


def test_a_damaged_receipt_is_refused(tmp_path: Path) -> None:
    receipt = check_index(CheckRequest([write(tmp_path / "old.jsonl", handbook())])).receipt
    receipt.write(tmp_path / "index.receipt")
    content = (tmp_path / "index.receipt").read_bytes()
    (tmp_path / "index.receipt").write_bytes(content[:-100])
    with pytest.raises(SourceError, match="is no receipt"):
        find_receipt(str(tmp_path / "index.receipt"))


QUOTE = "up to 190 euros"
ROWS = [
    {"id": "evidence", "user_input": "Q?", "evidence_spans": [{"text": "{quote}", "document": "travel.md"}]},
    {"id": "other", "user_input": "Q?", "evidence_spans": [{"text": "{other}", "document": "expenses.md"}]},
    {"id": "passage", "user_input": "Q?", "retrieved_contexts": ["{passage}"]},
    {"id": "judged", "user_input": "Q?", "qrels": {"travel.md#1": 1}},
    {"id": "elsewhere", "user_input": "Q?", "retrieved_contexts": ["Not of this index."]},
]


def write_rows(folder: Path, index: Index) -> str:
    travel = next(row for row in index if row["id"] == "travel.md#1")
    expenses = next(row for row in index if row["id"] == "expenses.md#1")
    texts = {"{quote}": travel["text"][20:90], "{other}": expenses["text"][20:90], "{passage}": travel["text"]}
    content = "\n".join(map(json.dumps, ROWS))
    for name, text in texts.items():
        content = content.replace(name, json.dumps(text)[1:-1])
    path = folder / "rows.jsonl"
    path.write_text(content, encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("with_text", [True, False])
def test_rows_whose_text_is_gone_are_named(with_text: bool, tmp_path: Path) -> None:
    rows = write_rows(tmp_path, handbook())
    lost = change(handbook(), "t", lambda _: None)
    old = check_index(CheckRequest([write(tmp_path / "old.jsonl", handbook())])).receipt
    old.write(tmp_path / "old.receipt")
    new: Sequence[str] = [write(tmp_path / "new.jsonl", lost)]
    if not with_text:
        check_index(CheckRequest(new)).receipt.write(tmp_path / "new.receipt")
        new = [str(tmp_path / "new.receipt")]
    request = CheckRequest(new, [str(tmp_path / "old.receipt")], rows=lambda: read_samples(rows, SourceOptions(), {}))
    touched = check_index(request).touched
    assert touched is not None
    assert {name: [*why] for name, why in touched.rows.items()} == {
        "evidence": ["its evidence is gone or edited"],
        "passage": ["a retrieved passage is gone or edited"],
        "judged": ["a judged passage is gone or edited"],
    }
    assert touched.sentence.startswith("the scores of 3 of 5 rows must be expected to move")


def test_the_chunks_of_an_index_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def read_and_count(address: str, *options: Any) -> Iterator[IndexChunk]:
        read.append(Path(address).name)
        return read_index(address, *options)

    monkeypatch.setattr(index_comparison, "read_index", read_and_count)
    rows = pa.Table.from_pylist([{"row_id": "1", "retrieved_contexts": [handbook()[0]["text"]]}])
    checked = check(tmp_path, handbook(), handbook()[1:], rows=lambda: [rows])
    assert checked.touched is not None
    assert [*checked.touched.rows] == ["1"]
    assert sorted(read) == ["new.jsonl", "old.jsonl"]
