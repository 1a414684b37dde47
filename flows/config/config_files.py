"""Read files that hold options: TOML, YAML and JSON of a bounded size, in which each key is given once."""

import codecs
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, TypeAlias

import yaml

from metric_core.errors import ConfigError
from metric_core.parsing.regular_files import regular
from metric_core.parsing.strict_json import parse_json

Form: TypeAlias = Literal["TOML", "YAML", "JSON"]

_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
MAX_BYTES = 1024**2
"""Largest size of a file, with the aliases of YAML written out."""


def read_options(path: Path, what: str, form: Form) -> Any:
    """Return the content of a file.

    Args:
        what: Description of the file for messages, such as "the configuration file".

    Raises:
        FileNotFoundError: The file does not exist.
        ConfigError: The file cannot be read, is larger than 1 MiB, or gives a key twice.
    """
    try:
        with regular(path).open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise ConfigError(f"{what} {path} has more than {MAX_BYTES:,} bytes")
        if content.startswith(_UTF16_MARKS):
            raise ConfigError(f"{what} {path} is UTF-16; save it as UTF-8")
        return _PARSERS[form](content.decode("utf-8-sig"))
    except FileNotFoundError:
        raise
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise ConfigError(f"{what} {path} cannot be read as {form}: {error}") from error
    except RecursionError as error:
        raise ConfigError(f"{what} {path} cannot be read: it is nested too deeply") from error


def _parse_yaml(text: str) -> Any:
    loader = yaml.SafeLoader(text)
    try:
        root = loader.get_single_node()
        if root is None:
            return None
        _check_node(root, {})
        return loader.construct_document(root)
    finally:
        loader.dispose()


def _check_node(node: yaml.Node, sizes: dict[int, int | None]) -> int:
    """Return the size of a node with its aliases written out; refuse keys given twice.

    Args:
        sizes: Sizes of the nodes checked so far, by identity; None for those that contain the node.
    """
    if id(node) in sizes:
        known = sizes[id(node)]
        if known is None:
            raise ValueError(f"line {_line(node)}: an alias refers to a value that contains it")
        return known
    sizes[id(node)] = None
    size = 1
    if isinstance(node, yaml.ScalarNode):
        size += len(node.value)
    elif isinstance(node, yaml.MappingNode):
        _refuse_repeated_keys(node)
        size += sum(_check_node(key, sizes) + _check_node(value, sizes) for key, value in node.value)
    elif isinstance(node, yaml.SequenceNode):
        size += sum(_check_node(item, sizes) for item in node.value)
    if size > MAX_BYTES:
        raise ValueError(f"line {_line(node)}: its aliases, written out, have more than {MAX_BYTES:,} bytes")
    sizes[id(node)] = size
    return size


def _refuse_repeated_keys(node: yaml.MappingNode) -> None:
    lines: dict[tuple[str, str], int] = {}
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode):
            name = (key.tag, key.value)
            if name in lines:
                raise ValueError(
                    f"the key {key.value!r} is given twice, in line {lines[name]} and in line {_line(key)}; keep one"
                )
            lines[name] = _line(key)


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


_PARSERS: dict[Form, Callable[[str], Any]] = {"TOML": tomllib.loads, "YAML": _parse_yaml, "JSON": parse_json}
