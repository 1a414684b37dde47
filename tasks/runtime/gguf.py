"""Find a GGUF file, read what it says about its model without loading it, and plan how a server shares the memory.

A file has a header of keys and values before its weights. Those that are read here come before the tokenizer's.
"""

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from metric_core.errors import ConfigError
from tasks.runtime.machine import count_processors, find_free_memory

SUFFIX = ".gguf"
WINDOW = 8192
"""Tokens of a request, prompt and reply, that a conversation has room for unless more are asked for."""

CORES_PER_SLOT, MOST_SLOTS = 4, 8
"""Conversations are answered side by side only where cores are left: each further one reads every beginning again."""

_MAGIC = b"GGUF"
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
"""Type of a value -> how `struct` reads it."""

_TEXT, _LIST = 8, 9
_HALF = 2
"""Bytes of a number in the cache of keys and values."""

_WORKING = 512 * 1024**2
"""Bytes that a server takes besides weights and cache."""

_MOST_KEPT = 1024**3
_MIB = 1024**2
_REPOSITORY_PARTS = 2


@dataclass(frozen=True, slots=True)
class GgufModel:
    """A model as its file describes it.

    Args:
        size: Bytes of the file.
        window: Tokens that the model was trained to read.
        token_bytes: Bytes of a token in the cache of keys and values.
    """

    size: int
    window: int
    token_bytes: int

    @classmethod
    def read(cls, file: Path) -> "GgufModel":
        """Read the header of a file.

        Raises:
            ConfigError: It is not a GGUF file, or its header is damaged.
        """
        try:
            with file.open("rb") as content:
                values = _read_header(content)
            kind = values["general.architecture"]
            heads = values[f"{kind}.attention.head_count"]
            keys = values.get(f"{kind}.attention.head_count_kv", heads)
            width = values.get(f"{kind}.attention.key_length", values[f"{kind}.embedding_length"] // _most(heads))
            layers, window = values[f"{kind}.block_count"], values[f"{kind}.context_length"]
        except OSError as error:
            raise ConfigError(f"the model {file} cannot be read: {error.strerror}; name a file that can be") from error
        except (KeyError, ValueError, struct.error, TypeError) as error:
            raise ConfigError(
                f"the model {file} is not a GGUF file of a language model, or is damaged ({error}); llama.cpp needs "
                "one: get it whole, and compare its size and digest with those that its publisher states"
            ) from error
        return cls(file.stat().st_size, window, 2 * layers * _most(keys) * width * _HALF)


def find_gguf(model: str) -> Path | None:
    """Return the file of a model; None if it is at the hub and not on this machine.

    Args:
        model: Path of the file, or `OWNER/REPOSITORY/FILE.gguf` at the hub.

    Raises:
        ConfigError: There is no such file, and the name is not that of one at the hub.
    """
    file = Path(model).expanduser()
    if file.is_file():
        return file
    repository, name = _split(model)
    if repository is None:
        raise ConfigError(
            f"there is no file {model}. Name a GGUF file ({SUFFIX}) of a model that follows instructions, or one of "
            f"the hub as OWNER/REPOSITORY/FILE{SUFFIX}, which is downloaded"
        )
    from huggingface_hub import try_to_load_from_cache  # noqa: PLC0415 slow to import

    found = try_to_load_from_cache(repository, name)
    return Path(found) if isinstance(found, str) else None


def locate_gguf(model: str) -> str:
    """Return the path of a model; its name if it is at the hub and not on this machine."""
    return str(find_gguf(model) or model)


def fetch_gguf(model: str) -> None:
    """Download a model that is at the hub and not on this machine.

    Raises:
        ConfigError: There is no such file, neither here nor at the hub, or the hub cannot be reached.
    """
    repository, name = _split(model)
    if find_gguf(model) is not None or repository is None:
        return
    from huggingface_hub import hf_hub_download  # noqa: PLC0415 slow to import

    try:
        hf_hub_download(repository, name)
    except (OSError, ValueError) as error:
        first = str(error).strip().partition("\n")[0].rstrip(".")
        raise ConfigError(
            f"the model {model} is not on this machine and cannot be downloaded: {first or type(error).__name__}. Copy "
            "the file here and name it by its path, or correct the name, or the connection to the hub"
        ) from error


def plan_server(model: str, window: int | None) -> dict[str, object]:
    """Return how a server shares cores and memory among conversations, as the options of `serve_gguf.py`.

    Args:
        model: See `find_gguf`.
        window: Tokens of a request; None for 8192, or for what the model was trained to read if that is less.

    Raises:
        ConfigError: The file is missing, is not a model, or is too large for the memory that is free.
    """
    cores = count_processors()
    slots = min(MOST_SLOTS, max(1, cores // CORES_PER_SLOT))
    file = find_gguf(model)
    if file is None:  # nothing can be said until it is downloaded
        return {}
    found = GgufModel.read(file)
    window = window or min(WINDOW, found.window)
    slot = window * found.token_bytes
    needed = found.size + _WORKING
    free = find_free_memory()
    if free is not None and needed + slot > free:
        raise ConfigError(
            f"the model {file} needs {_gib(needed + slot)} of memory ({_gib(found.size)} of weights, {_gib(slot)} for "
            f"{window:,} tokens), and {_gib(free)} are free. Free some, take a smaller or more quantized model, or "
            "lower --max-model-len"
        )
    left = slots * slot + _MOST_KEPT if free is None else free - needed
    slots = min(slots, left // slot)
    kept = min(_MOST_KEPT, (left - slots * slot) // 2)
    return {"--slots": slots, "--window": window, "--threads": cores, "--kept-mib": kept // _MIB}


def _split(model: str) -> tuple[str | None, str]:
    """Return repository and file of a name at the hub; no repository if it cannot be one."""
    parts = model.split("/", _REPOSITORY_PARTS)
    is_named = len(parts) > _REPOSITORY_PARTS and all(parts) and not parts[0].startswith((".", "~"))
    return ("/".join(parts[:_REPOSITORY_PARTS]), parts[-1]) if is_named else (None, model)


def _gib(size: int) -> str:
    return f"{size / 1024**3:.1f} GiB"


def _most(count: int | list[int]) -> int:
    """Return a number of heads, which some models state layer by layer."""
    return max(count) if isinstance(count, list) else count


def _read_header(content: BinaryIO) -> dict[str, Any]:
    """Return the values before those of the tokenizer, which are long and not needed."""
    if content.read(len(_MAGIC)) != _MAGIC:
        raise ValueError("it does not begin as one")
    _, _, count = struct.unpack("<IQQ", content.read(20))
    values: dict[str, Any] = {}
    for _ in range(count):
        name = _read_text(content)
        if name.startswith("tokenizer."):
            break
        values[name] = _read_value(content, *struct.unpack("<I", content.read(4)))
    return values


def _read_text(content: BinaryIO) -> str:
    (length,) = struct.unpack("<Q", content.read(8))
    text = content.read(length) if length < _MIB else b""
    if len(text) != length:
        raise ValueError("it ends within its header")
    return text.decode("utf-8", "replace")


def _read_value(content: BinaryIO, kind: int) -> Any:
    if kind == _TEXT:
        return _read_text(content)
    if kind == _LIST:
        of, length = struct.unpack("<IQ", content.read(12))
        return [_read_value(content, of) for _ in range(length)]
    form = f"<{_NUMBERS[kind]}"
    return struct.unpack(form, content.read(struct.calcsize(form)))[0]
