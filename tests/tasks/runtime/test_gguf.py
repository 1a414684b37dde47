"""GGUF files are read, found, and shared among as many conversations as cores and memory allow."""

from pathlib import Path

import pytest

from metric_core.errors import ConfigError
from tasks.runtime import gguf
from tests.tasks.runtime.gguf_files import MODEL, write_gguf

GIB = 1024**3


def set_machine(monkeypatch: pytest.MonkeyPatch, cores: int, memory: int | None) -> None:
    monkeypatch.setattr(gguf, "count_processors", lambda: cores)
    monkeypatch.setattr(gguf, "find_free_memory", lambda: memory)


def test_the_header_tells_window_and_cache(tmp_path: Path) -> None:
    file = write_gguf(tmp_path / "m.gguf", size=5000)
    assert gguf.GgufModel.read(file) == gguf.GgufModel(size=5000, window=4096, token_bytes=2 * 2 * 2 * 16 * 2)
    layered = write_gguf(file, MODEL | {"tiny.attention.head_count_kv": [1, 4], "tiny.attention.key_length": 32})
    assert gguf.GgufModel.read(layered).token_bytes == 2 * 2 * 4 * 32 * 2


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"# a page", "it does not begin as one"),
        (b"GGUF" + b"\3\0\0\0", "requires a buffer"),
        (b"GGUF" + b"\3\0\0\0" + 8 * b"\0" + b"\1" + 7 * b"\0" + b"\5" + 7 * b"\0" + b"ab", "ends within its header"),
    ],
)
def test_a_file_that_is_no_model_is_refused(tmp_path: Path, content: bytes, problem: str) -> None:
    file = tmp_path / "m.gguf"
    file.write_bytes(content)
    with pytest.raises(ConfigError, match=f"is not a GGUF file of a language model, or is damaged .*{problem}"):
        gguf.GgufModel.read(file)


def test_a_model_without_layers_is_refused(tmp_path: Path) -> None:
    file = write_gguf(tmp_path / "m.gguf", {"general.architecture": "clip"})
    with pytest.raises(ConfigError, match="is not a GGUF file of a language model"):
        gguf.GgufModel.read(file)


@pytest.mark.parametrize(
    ("cores", "memory", "slots"), [(2, 8 * GIB, 1), (16, 8 * GIB, 4), (128, None, 8), (16, GIB, 4)]
)
def test_slots_follow_from_cores_and_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cores: int, memory: int | None, slots: int
) -> None:
    set_machine(monkeypatch, cores, memory)
    file = write_gguf(tmp_path / "m.gguf")
    options = gguf.plan_server(str(file), None)
    assert (options["--slots"], options["--window"], options["--threads"]) == (slots, 4096, cores)


def test_little_memory_leaves_one_slot_and_less_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write_gguf(tmp_path / "m.gguf", MODEL | {"tiny.block_count": 2000})
    set_machine(monkeypatch, 16, GIB + 200 * 1024**2)
    options = gguf.plan_server(str(file), 2048)
    assert (options["--slots"], options["--window"], options["--kept-mib"]) == (1, 2048, 105)


def test_a_model_that_does_not_fit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_machine(monkeypatch, 2, 4 * GIB)
    file = write_gguf(tmp_path / "m.gguf", size=6 * GIB)
    with pytest.raises(
        ConfigError, match=r"needs 6\.5 GiB of memory .* and 4\.0 GiB are free\. Free some, take a smaller"
    ):
        gguf.plan_server(str(file), None)


def test_a_missing_file_and_one_of_an_unreachable_hub_say_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ConfigError, match=r"there is no file nothing\.gguf\. Name a GGUF file"):
        gguf.fetch_gguf("nothing.gguf")
    with pytest.raises(ConfigError, match="there is no file"):
        gguf.find_gguf(str(tmp_path / "a" / "b.gguf"))

    def refuse(*_: object) -> None:
        raise OSError("the hub cannot be reached.\nmore")

    monkeypatch.setattr("huggingface_hub.hf_hub_download", refuse)
    monkeypatch.setattr("huggingface_hub.try_to_load_from_cache", lambda *_: None)
    assert gguf.plan_server("Org/Tiny-GGUF/tiny.gguf", None) == {}
    assert gguf.locate_gguf("Org/Tiny-GGUF/tiny.gguf") == "Org/Tiny-GGUF/tiny.gguf"
    with pytest.raises(
        ConfigError, match=r"not on this machine and cannot be downloaded: the hub cannot be reached\. Copy"
    ):
        gguf.fetch_gguf("Org/Tiny-GGUF/tiny.gguf")
