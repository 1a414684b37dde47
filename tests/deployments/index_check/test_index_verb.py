"""`assay index check` names what an index lost, and ends with exit code 10 beyond the limits."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.deployments.cli.conftest import Outcome
from tests.deployments.cli.conftest import assay as assay  # noqa: PLC0414 a fixture here too

Assay = Callable[..., Outcome]


def write(path: Path, first: int = 0, **fields: str) -> str:
    rows = [
        {"id": f"{number}", "document": f"hall-{number}.md", "text": f"Hall {number} repairs bikes all day.", **fields}
        for number in range(first, 20)
    ]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return str(path)


def test_a_receipt_is_written_and_compared_with(assay: Assay, tmp_path: Path) -> None:
    receipt, page = str(tmp_path / "index.receipt"), tmp_path / "check.html"
    done = assay("index", "check", write(tmp_path / "1.jsonl"), "--receipt", receipt)
    assert done.code == 0, done.err
    assert "20 documents, 20 chunks" in done.out
    assert assay("index", "check", str(tmp_path / "1.jsonl"), "--against", receipt).code == 0
    done = assay("index", "check", write(tmp_path / "2.jsonl", 2), "--against", receipt, "--html", str(page))
    assert done.code == 10
    assert "beyond the limits: lost" in done.out
    assert "hall-0.md, hall-1.md" in page.read_text(encoding="utf-8")
    told = json.loads(assay("index", "check", str(tmp_path / "2.jsonl"), "--against", receipt, "--json").out)
    assert (told["passed"], told["findings"][0]["count"], told["old"]["documents"]) == (False, 2, 20)


def test_limits_come_from_the_configuration_or_the_command_line(assay: Assay, tmp_path: Path) -> None:
    old, new = write(tmp_path / "1.jsonl"), write(tmp_path / "2.jsonl", 2)
    (tmp_path / "assay.toml").write_text("[deploy.index_limits]\nlost = 0.2\n", encoding="utf-8")
    call = ("index", "check", new, "--against", old)
    assert assay(*call, "--config", str(tmp_path / "assay.toml")).code == 0
    assert assay(*call, "--config", str(tmp_path / "assay.toml"), "--max", "lost=0.05").code == 10


def test_touched_rows_are_listed(assay: Assay, tmp_path: Path) -> None:
    rows = [
        {"id": f"q{n}", "user_input": "?", "retrieved_contexts": [f"Hall {n} repairs bikes all day."]}
        for n in range(30)
    ]
    questions = tmp_path / "rows.jsonl"
    questions.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    call = ("index", "check", write(tmp_path / "2.jsonl", 2), "--against", write(tmp_path / "1.jsonl"))
    done = assay(*call, "--questions", str(questions))
    told = " ".join(done.out.split())
    assert "the scores of 2 of 30 rows must be expected to move: a retrieved passage is gone or edited (2)" in told
    found = json.loads(assay(*call, "--questions", str(questions), "--json").out)
    assert found["touched"]["rows"].keys() == {"q0", "q1"}


def test_a_column_of_texts_is_mapped(assay: Assay, tmp_path: Path) -> None:
    path = tmp_path / "1.jsonl"
    path.write_text('{"id": "1", "body": "Hall 1 repairs bikes."}\n', encoding="utf-8")
    assert assay("index", "check", str(path)).code == 3
    assert assay("index", "check", str(path), "--column-map", "body=retrieved_contexts").code == 0


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (("--max", "lost"), 2, "KIND=SHARE"),
        (("--max", "lsot=0.1"), 2, "Did you mean lost?"),
        (("--questions", "q.jsonl"), 2, "--against"),
        (("--against", "no-such-file.jsonl"), 3, "no-such-file.jsonl"),
    ],
)
def test_mistakes_are_named(assay: Assay, tmp_path: Path, options: tuple[str, ...], code: int, message: str) -> None:
    done = assay("index", "check", write(tmp_path / "1.jsonl"), *options)
    assert (done.code, message in " ".join(done.err.split())) == (code, True), done.err
