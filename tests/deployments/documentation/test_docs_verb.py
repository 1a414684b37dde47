"""`assay docs` prints the pages of the documentation, also from a wheel, and messages name pages by it."""

import ast
import os
import re
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from deployments.cli._support.console import stdout
from tests.deployments.cli.conftest import Outcome
from tests.deployments.cli.conftest import assay as assay  # noqa: PLC0414 a fixture here too
from tests.structure.house import PACKAGES, ROOT, files, modules, text_of

Assay = Callable[..., Outcome]
DOCS = ROOT / "docs"
_NAMED = re.compile(r"\bassay docs ((?:[a-z-]+/)?[a-z][\w-]*)")
_FILE = re.compile(r"(?<![\w/])docs/[\w/-]+\.(?:md|json)\b")


def printed_texts() -> Iterator[tuple[Path, str]]:
    """Yield the texts in the code that may be printed, also the docstrings of verbs, and the files for users."""
    for path in modules(*PACKAGES):
        if path.is_relative_to("deployments/documentation"):
            continue
        tree = ast.parse(text_of(path))
        is_verb = path.name.endswith("_verb.py") or path.is_relative_to("deployments/cli")
        bare = (each for each in (tree.body[:1] if is_verb else ast.walk(tree)) if isinstance(each, ast.Expr))
        silent = {id(each.value) for each in bare}
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in silent:
                yield path, node.value
    for path in files():
        if path.suffix in {".toml", ".yaml", ".j2", ".js", ".sh"} and path.parts[0] in {*PACKAGES, "examples"}:
            yield path, text_of(path)


def test_a_page_is_printed_as_it_was_written_by_each_of_its_names(assay: Assay) -> None:
    written = (DOCS / "judge.md").read_text(encoding="utf-8")
    for name in ("judge", "judge.md", "docs/judge.md", "../judge.md", "judge.md#a-cascade"):
        assert assay("docs", name).out == written
    assert assay("docs", "start/by-hand").out == (DOCS / "start" / "by-hand.md").read_text(encoding="utf-8")
    schema = (DOCS / "alert.schema.json").read_text(encoding="utf-8")
    assert assay("docs", "alert.schema.json").out == schema


def test_the_list_has_the_pages_for_users_with_their_titles(assay: Assay) -> None:
    lines = dict(line.strip().split(maxsplit=1) for line in assay("docs").out.splitlines())
    wanted = {path.relative_to(DOCS).with_suffix("").as_posix() for path in (*DOCS.glob("*.md"), *DOCS.glob("start/*"))}
    assert wanted < lines.keys()
    assert len(lines) == len(wanted) + 2  # the headings, and the hint
    assert lines["judge"] == "Judges"


def test_an_unknown_page_is_refused_with_those_of_similar_names(assay: Assay) -> None:
    outcome = assay("docs", "docs/jugde.md")
    assert (outcome.code, outcome.out) == (2, "")
    assert "no page docs/jugde.md. Similar: judge." in outcome.err
    assert "`assay docs` lists the pages" in assay("docs", "../../pyproject.toml").err


def test_a_terminal_shows_a_page_laid_out_in_a_pager(assay: Assay, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[str] = []
    monkeypatch.setattr("pydoc.pager", shown.append)
    monkeypatch.setattr(stdout, "_force_terminal", True)
    monkeypatch.setenv("LESS", "")
    assert assay("docs", "judge").out == ""
    (text,) = shown
    assert "Judges" in text
    assert "servers and verifiers" in text
    assert "[servers and verifiers]" not in text


def test_every_page_that_is_named_exists_and_none_is_named_by_a_file() -> None:
    texts = [*printed_texts(), *((path, text_of(path)) for path in (Path("README.md"), *Path("docs").glob("*.md")))]
    named = {page for _, text in texts for page in _NAMED.findall(text)}
    assert {"judge", "cli", "cost", "gates", "deployments"} <= named
    assert [page for page in named if not (DOCS / f"{page}.md").is_file()] == []
    by_file = {(path.as_posix(), file) for path, text in printed_texts() for file in _FILE.findall(text)}
    assert by_file == set()


def test_a_wheel_has_the_pages_and_prints_them(tmp_path: Path) -> None:
    pytest.importorskip("hatchling", reason="the extra `dev` is not installed: nothing builds a wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, capture_output=True, check=True)
    (wheel,) = tmp_path.glob("*.whl")
    place = tmp_path / "installed"
    zipfile.ZipFile(wheel).extractall(place)
    pages = {path.relative_to(DOCS): path.read_bytes() for path in DOCS.rglob("*") if path.suffix in {".md", ".json"}}
    packaged = place / "deployments" / "documentation" / "docs"
    found = {path.relative_to(packaged): path.read_bytes() for path in packaged.rglob("*") if path.is_file()}
    assert found == pages
    code = "import sys; sys.argv[0] = 'assay'; from rag_assay.__main__ import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "docs", "judge"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(place)},
        capture_output=True,
        check=True,
    )
    assert done.stdout == pages[Path("judge.md")]
