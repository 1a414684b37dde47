"""Objects as Python prints them, in cells and in lists of passages."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tasks.sources.cells.printed_objects import parse_printed
from tests.tasks.sources.helpers import column, read, write_lines

DOCUMENT = {"page_content": 'It\'s "red".\nAnd [new], (very).', "metadata": {"source": "a.md", "tags": ["x", None]}}
PRINTED = f"Document(metadata={DOCUMENT['metadata']!r}, page_content={DOCUMENT['page_content']!r})"
SHOWN = f"page_content={DOCUMENT['page_content']!r} metadata={DOCUMENT['metadata']!r}"


@pytest.mark.parametrize(
    "cell",
    [
        f"[{PRINTED}]",
        f"[Document(id='a.md', metadata={{}}, page_content={DOCUMENT['page_content']!r})]",
        f"[NodeWithScore(node=TextNode(id_='a.md', embedding=None, text={DOCUMENT['page_content']!r}), score=0.5)]",
        json.dumps([PRINTED]),
        json.dumps([SHOWN]),
        json.dumps([json.dumps(DOCUMENT)]),
        json.dumps([str(DOCUMENT)]),
        f"array([{DOCUMENT!r}], dtype=object)",
        f"array([{PRINTED}], dtype=object)",
    ],
)
def test_passages_in_cells(cell: str, tmp_path: Path) -> None:
    rows = [{"question": "Why?", "answer": "So.", "contexts": cell}]
    path = tmp_path / "a.csv"
    pd.DataFrame(rows).to_csv(path, index=False)
    for source in (path, write_lines(tmp_path / "a.jsonl", rows)):
        _, table = read(source, {})
        assert column(table, "retrieved_contexts") == [[DOCUMENT["page_content"]]]
        assert column(table, "retrieved_context_ids") == [["a.md"]]


@pytest.mark.parametrize(
    "text",
    [
        "Document(id=a, content: 'It's red...')",
        "[Document(page_content='a'",
        "Document",
        "Document(page_content='a') and more",
        "max(a=1)",
        "page_content='a' metadata=",
        "[" * 10_000 + "Document(",
        "Document(" * 10_000,
    ],
)
def test_what_cannot_be_read_stays_a_text(text: str) -> None:
    assert parse_printed(text) is None


@pytest.mark.parametrize(
    "texts",
    [
        ['{"city": "Delft", "text": "Rain."}'],
        ['{"page_content": "Rain."}', "Snow."],
        ['{"text": "Rain."}'],
        ["Document(page_content: 'Rain.')"],
        ["[1] Rain.", "(2) Snow."],
    ],
)
def test_passages_that_only_look_alike_are_texts(texts: list[str], tmp_path: Path) -> None:
    row: dict[str, Any] = {"question": "Why?", "answer": "So.", "contexts": texts}
    _, table = read(write_lines(tmp_path / "a.jsonl", [row]), {})
    assert column(table, "retrieved_contexts") == [texts]
