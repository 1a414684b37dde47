"""Files of options: each key once, a bounded size, and a message with file and line."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from deployments.eval_hub.job_spec import JobSpec
from flows.config import config_files
from flows.config.gate_file import load_gate
from flows.config.loading import load_config
from metric_core.errors import ConfigError

LOADERS: dict[str, Callable[[Path], object]] = {
    ".toml": load_config,
    ".yaml": load_config,
    ".json": JobSpec.from_file,
    ".gate": load_gate,
}
BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(b)}: &{chr(b)} [{', '.join([f'*{chr(b - 1)}'] * 10)}]\n" for b in range(ord("b"), ord("k"))
)


def refusal(path: Path, content: str | bytes) -> str:
    """Write a file and return the message with which it is refused."""
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(ConfigError) as caught:
        LOADERS[path.suffix](path)
    assert str(path) in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.yaml", "limit: 1\njudge:\n  backend: builtin\n'limit': 2\n", "given twice, in line 1 and in line 4"),
        ("a.yaml", "judge:\n  backend: builtin\n  backend: scripted\n", "given twice, in line 2 and in line 3"),
        ("a.yaml", "judge: {options: [{a: 1, a: 1}]}", "'a' is given twice"),
        ("a.toml", "limit = 1\nlimit = 2\n", "overwrite a value (at line 2"),
        ("a.json", '{"id": "a",\n"model": {\n"url": "x", "url": "y"}}', "'url' is given twice in the object on line 2"),
        ("a.gate", "min_rows = 2\nmin_rows = 3\n", "overwrite a value (at line 2"),
    ],
)
def test_a_key_given_twice_is_refused_with_its_line(tmp_path: Path, name: str, content: str, message: str) -> None:
    assert message in refusal(tmp_path / name, content)


def test_values_of_a_merged_table_are_overridden(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("judge: &base {backend: builtin}\npanel: [{<<: *base, backend: scripted, script: s.json}]\n")
    assert load_config(path).panel[0].backend == "scripted"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (BOMB, "its aliases, written out, have more than 1,048,576 bytes"),
        ("a: &a [*a]", "line 1: an alias refers to a value that contains it"),
        ("a: &a\n  b: *a", "an alias refers to a value that contains it"),
        ("a: " + "[" * 5000 + "]" * 5000, "nested too deeply"),
        (b"a: \xff", "cannot be read as YAML"),
    ],
)
def test_a_small_file_cannot_expand(tmp_path: Path, content: str | bytes, message: str) -> None:
    start = time.process_time()
    assert message in refusal(tmp_path / "a.yaml", content)
    assert time.process_time() - start < 5


@pytest.mark.parametrize("suffix", [".toml", ".json"])
def test_a_file_that_is_nested_deeply_is_refused(tmp_path: Path, suffix: str) -> None:
    start = "a = " if suffix == ".toml" else ""
    assert "nested too deeply" in refusal(tmp_path / f"a{suffix}", start + "[" * 200_000 + "]" * 200_000)


@pytest.mark.parametrize("suffix", LOADERS)
def test_the_size_of_a_file_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    assert "has more than 1,048,576 bytes" in refusal(tmp_path / f"a{suffix}", "# " + "x" * 2**20)
    monkeypatch.setattr(config_files, "MAX_BYTES", 2000)
    assert "has more than 2,000 bytes" in refusal(tmp_path / f"a{suffix}", "# " + "x" * 2000)


@pytest.mark.parametrize(
    ("name", "text"),
    [("a.toml", "limit = 7"), ("a.yaml", "limit: 7"), ("a.gate", '[[condition]]\nmetric = "x"')],
)
def test_a_byte_order_mark_is_no_part_of_a_file(name: str, text: str, tmp_path: Path) -> None:
    content = {mark: tmp_path / f"{len(mark)}{name}" for mark in ("", "\ufeff")}
    for mark, path in content.items():
        path.write_text(mark + text, encoding="utf-8")
    form: config_files.Form = "YAML" if name.endswith("yaml") else "TOML"
    plain, marked = (config_files.read_options(path, "the file", form) for path in content.values())
    assert plain == marked


def test_a_file_of_utf_16_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("limit = 7", encoding="utf-16")
    with pytest.raises(ConfigError, match="is UTF-16; save it as UTF-8"):
        load_config(tmp_path / "a.toml")
