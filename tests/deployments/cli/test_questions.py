"""`assay questions` writes a file of questions, and says what it kept, wrote, rejected and missed."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.deployments.cli.conftest import Outcome

Assay = Callable[..., Outcome]

CHUNKS = [
    {"id": "hotels#1", "title": "Hotels", "text": "A hotel room in London may cost up to 190 euros a night."},
    {"id": "bikes#1", "text": "Office staff may work from home up to three days a week."},
    {"id": "menu#1", "text": "Home. About. Contact."},
]


def write(path: Path, *chunks: dict[str, str]) -> str:
    path.write_text("".join(f"{json.dumps(chunk)}\n" for chunk in (*chunks, chunks[0])), encoding="utf-8")
    return str(path)


@pytest.mark.models
def test_questions_are_written_then_kept_or_retired(assay: Assay, tmp_path: Path) -> None:
    out = tmp_path / "questions.jsonl"
    done = assay("questions", write(tmp_path / "1.jsonl", *CHUNKS), "--out", str(out), "--index-version", "1")
    assert done.code == 0, done.err
    assert "2 of 3 documents have a question" in done.out
    assert "documents without one: menu" in done.out
    assert "no language model wrote these questions" in done.err
    rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert {row["question_kind"]: row["since"] for row in rows} == {"cloze": "1", "title": "1"}

    edited = {**CHUNKS[0], "text": "A hotel room in London may cost up to 210 euros a night."}
    source = write(tmp_path / "2.jsonl", edited, *CHUNKS[1:])
    told = json.loads(assay("questions", source, "--out", str(out), "--index-version", "2", "--json").out)
    assert set(told["retired"].values()) == {"its evidence was edited: '190' became '210'"}
    after = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert [row for row in after if row["since"] == "1"] == [row for row in rows if row["id"] not in told["retired"]]
    assert {row["id"] for row in after if row["since"] == "2"} == set(told["new"])


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (("--kinds", "single_fcat"), 2, "Did you mean 'single_fact'?"),
        (("--kinds", "single_fact"), 2, "cannot write questions of the kind single_fact"),
        (("--column-map", "txet=retrieved_contexts"), 3, "'txet'"),
        (("--limit", "1"), 2, "No such option: --limit"),
    ],
)
def test_mistakes_are_named(assay: Assay, tmp_path: Path, options: tuple[str, ...], code: int, message: str) -> None:
    out = tmp_path / "questions.jsonl"
    done = assay("questions", write(tmp_path / "1.jsonl", *CHUNKS), "--out", str(out), *options)
    assert (done.code, message in " ".join(done.err.split())) == (code, True), done.err
    assert not out.exists()


def test_a_part_of_the_index_retires_nothing_unless_told(assay: Assay, tmp_path: Path) -> None:
    out, index = tmp_path / "questions.jsonl", write(tmp_path / "1.jsonl", *CHUNKS)
    assay("questions", index, "--out", str(out))
    whole = out.read_text(encoding="utf-8")
    (tmp_path / "trial.toml").write_text(f'source = "{index}"\nlimit = 1\n', encoding="utf-8")
    assert assay("questions", str(tmp_path / "trial.toml"), "--out", str(out)).code == 0
    assert out.read_text(encoding="utf-8") == whole, "a limit of the rows of a trial is no end of the index"
    half = write(tmp_path / "half.jsonl", CHUNKS[-1])
    done = assay("questions", half, "--out", str(out))
    assert (done.code, "of 3 questions would retire" in done.err) == (3, True), done.err
    assert out.read_text(encoding="utf-8") == whole
    assert assay("questions", half, "--out", str(out), "--retire-any").code == 0
    assert out.read_text(encoding="utf-8") != whole
