"""Small GGUF files: a header that says what the model is, and as many bytes as are wanted."""

import struct
from pathlib import Path
from typing import Any

MODEL = {
    "general.architecture": "tiny",
    "tiny.block_count": 2,
    "tiny.context_length": 4096,
    "tiny.embedding_length": 64,
    "tiny.attention.head_count": 4,
    "tiny.attention.head_count_kv": 2,
}


def write_gguf(file: Path, values: dict[str, Any] | None = None, size: int = 0) -> Path:
    """Write a file with some values in its header."""
    values = {**(MODEL if values is None else values), "tokenizer.ggml.tokens": ["a", "b"]}
    content = b"GGUF" + struct.pack("<IQQ", 3, 0, len(values))
    for name, value in values.items():
        content += _text(name) + _value(value)
    with file.open("wb") as output:
        output.write(content)
        output.truncate(max(size, len(content)))
    return file


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text)) + text.encode()


def _value(value: Any) -> bytes:
    if isinstance(value, str):
        return struct.pack("<I", 8) + _text(value)
    if isinstance(value, list) and isinstance(value[0], str):
        return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(_text, value))
    if isinstance(value, list):
        return struct.pack(f"<IIQ{len(value)}I", 9, 4, len(value), *value)
    return struct.pack("<II", 4, value)
