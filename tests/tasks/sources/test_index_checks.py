"""Checks of an index come in by entry points."""

from importlib.metadata import EntryPoint

import pytest

from metric_core.errors import PluginError
from tasks.plugins.load_object import load_object
from tasks.sources import index_checks
from tasks.sources.chunk_file import IndexChunk
from tasks.sources.index_checks import IndexFinding, open_checks


class Counting:
    kinds = ("many",)

    def __init__(self) -> None:
        self.seen = 0

    def add(self, chunk: IndexChunk) -> None:
        self.seen += len(chunk.fields)

    def findings(self) -> list[IndexFinding]:
        return [IndexFinding("many", self.seen, 10, "columns", f"{self.seen} columns")]


def install(monkeypatch: pytest.MonkeyPatch, attribute: str) -> None:
    group = "rag_assay.index_checks"
    point = EntryPoint("counting", f"{__name__}:{attribute}", group)
    monkeypatch.setattr(index_checks, "installed_names", lambda _group: {"counting": point})
    monkeypatch.setattr("tasks.plugins.load_object.installed_names", lambda _group: {"counting": point})
    load_object.cache_clear()


def test_each_check_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, "Counting")
    (first,), (second,) = open_checks(), open_checks()
    assert type(first).__name__ == "Counting"
    assert first is not second


def test_something_else_in_the_group_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, "install.__name__")
    with pytest.raises(PluginError, match="wanted an IndexCheck"):
        list(open_checks())


@pytest.mark.parametrize(
    ("count", "limit", "is_beyond"), [(0, 0.0, False), (1, 0.1, False), (2, 0.1, True), (9, None, False)]
)
def test_a_finding_is_beyond_its_limit(count: int, limit: float | None, is_beyond: bool) -> None:
    assert IndexFinding("lost", count, 10, "documents", "", limit=limit).is_beyond is is_beyond
