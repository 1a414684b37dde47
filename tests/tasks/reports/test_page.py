"""Templates of pages are compiled once per installation."""

from pathlib import Path

import pytest
from jinja2 import DictLoader, Environment

from tasks.reports.page import CompiledTemplates, open_templates
from tasks.reports.run.report_page import load_templates


def render(folder: Path, source: str) -> str:
    loader = DictLoader({"page": source})
    environment = Environment(loader=loader, autoescape=True, bytecode_cache=CompiledTemplates(folder))
    return environment.get_template("page").render(text="<b>")


@pytest.fixture(autouse=True)
def write_bytecode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.dont_write_bytecode", False)


def test_a_template_is_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "compiled"
    assert render(folder, "one {{ text }}") == "one &lt;b&gt;"
    (file,) = folder.iterdir()
    with monkeypatch.context() as patched:
        patched.setattr(Environment, "compile", None)
        assert render(folder, "one {{ text }}") == "one &lt;b&gt;"
    assert list(folder.iterdir()) == [file]


def test_a_changed_template_is_compiled_again(tmp_path: Path) -> None:
    render(tmp_path, "one {{ text }}")
    assert render(tmp_path, "two {{ text }}") == "two &lt;b&gt;"
    assert render(tmp_path, "two {{ text }}") == "two &lt;b&gt;"


@pytest.mark.parametrize("kept", [0, 1, 10, 40, 60])
def test_a_damaged_template_is_compiled_again(tmp_path: Path, kept: int) -> None:
    render(tmp_path, "one {{ text }}")
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole[:kept] + b"\xff" * (len(whole) - kept))
    assert render(tmp_path, "one {{ text }}") == "one &lt;b&gt;"
    assert file.read_bytes() == whole


def test_pages_need_no_place_for_compiled_templates(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert render(tmp_path / "file", "one {{ text }}") == "one &lt;b&gt;"


def test_nothing_is_written_where_python_writes_no_bytecode(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    assert render(tmp_path, "one {{ text }}") == "one &lt;b&gt;"
    assert not list(tmp_path.iterdir())


def test_the_parts_of_the_report_are_loaded_before_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []
    templates = open_templates()
    monkeypatch.setattr(templates, "get_template", loaded.append)
    load_templates()
    assert {"report.html.j2", "page.html.j2", "_summary.html.j2"} <= set(loaded)
    assert [name for name in loaded if not name.endswith(".html.j2")] == []
