"""A package brings a reader: its name and a colon begin the addresses of its sources."""

from pathlib import Path

import pytest

from metric_core.errors import PluginError, SourceError
from tasks.options.source_options import split_kind
from tasks.sources.location import open_source
from tasks.sources.readers.protocol import Unreadable

READER = """
from rag_assay.plugins import InstalledReader, RawRow, RowSource


class Dialogues(RowSource):
    def __init__(self, files, name, root, warnings):
        super().__init__(name)
        self.files = files

    def rows(self, batch_rows):
        texts = [file.filesystem.cat(file.path).decode() for file in self.files]
        for number, text in enumerate(texts, start=1):
            question, _, answer = text.strip().partition(" - ")
            yield RawRow(number, {"user_input": question, "response": answer})


DIALOGUES = InstalledReader(Dialogues, (".dialogue",))
NO_READER = 3
"""


@pytest.fixture
def dialogues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of files for the reader of an installed package."""
    site = tmp_path / "site"
    info = site / "dialogues-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: dialogues\nVersion: 1.0\n", encoding="utf-8")
    points = "[rag_assay.readers]\ndialogue = dialogues_of_tests:DIALOGUES\nbroken = dialogues_of_tests:NO_READER\n"
    (info / "entry_points.txt").write_text(points, encoding="utf-8")
    (site / "dialogues_of_tests.py").write_text(READER, encoding="utf-8")
    monkeypatch.syspath_prepend(str(site))
    data = tmp_path / "data"
    data.mkdir()
    (data / "1.dialogue").write_text("Open? - Yes.\n", encoding="utf-8")
    (data / "2.dialogue").write_text("Cheap? - No.\n", encoding="utf-8")
    (data / "notes.md").write_text("none", encoding="utf-8")
    return data


@pytest.mark.parametrize(("address", "rows"), [("", 2), ("/*.dialogue", 2), ("/2.dialogue", 1)])
def test_files_are_read_by_an_installed_reader(dialogues: Path, address: str, rows: int) -> None:
    found = [row.content for row in open_source(f"dialogue:{dialogues}{address}").rows(100)]
    assert [row["response"] for row in found if not isinstance(row, Unreadable)] == ["Yes.", "No."][-rows:]


def test_only_an_installed_reader_has_a_prefix(dialogues: Path) -> None:
    assert split_kind("dialogue:a.txt") == ("dialogue:", "a.txt")
    assert split_kind("monologue:a.txt") == ("", "monologue:a.txt")
    with pytest.raises(SourceError, match="does not exist"):
        open_source(f"dialogue:{dialogues}/missing.dialogue")
    with pytest.raises(PluginError, match="the reader broken is 3, wanted an InstalledReader"):
        open_source(f"broken:{dialogues}")
