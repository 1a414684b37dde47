"""Parse lists and mappings in text cells of CSV files: JSON, Python literals, and what Python prints of objects."""

import ast
import io
import json
import re
import tokenize
import warnings
from typing import Any

from metric_core.columns import ColumnType
from metric_core.parsing.strict_json import DuplicateKeyError, require_unique_keys
from tasks.sources.cells.converters import CONVERTERS, Converter, as_joined_text
from tasks.sources.cells.printed_objects import parse_printed
from tasks.sources.readers.bad_rows import InvalidRowError

_WHOLE_NUMBERS = re.compile(r"\[[\d\s]+\]")
_NUMBERS = re.compile(r"\[\s*((nan|[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?)(\s*,\s*|\s+|(?=\])))+\]", re.IGNORECASE)
_NOT_LITERAL = (ValueError, TypeError, SyntaxError, MemoryError, RecursionError)


def make_cell_converter(kind: ColumnType) -> Converter:
    """Return the converter of a column type for cells, which are always text in CSV files and may be in others."""
    convert = CONVERTERS[kind]
    if kind is ColumnType.TEXT:
        return convert
    return lambda cell: convert(parse_cell(cell) if isinstance(cell, str) else cell)


def join_text_cell(cell: str) -> str:
    """Return the text of a cell that may contain a list of texts."""
    value = parse_cell(cell)
    return as_joined_text(value if isinstance(value, list | tuple) else cell)


def parse_cell(cell: str) -> Any:
    r"""Return the list or mapping in a cell; the cell itself if it contains neither.

    >>> parse_cell('["a", "b"]'), parse_cell("['a', 'b']"), parse_cell("['a' 'b']"), parse_cell("[1 2]")
    (['a', 'b'], ['a', 'b'], ['a', 'b'], [1, 2])
    >>> parse_cell(r'"[\"a\"]"'), parse_cell('"a"')
    (['a'], '"a"')
    >>> parse_cell("[0.5 1. 2e-3]")
    [0.5, 1.0, 0.002]
    >>> parse_cell("[Document(metadata={}, page_content='Rain.')]")
    [{'metadata': {}, 'page_content': 'Rain.'}]

    Raises:
        InvalidRowError: The cell contains an ambiguous list, or a mapping that gives a key twice.
    """
    text = cell.strip()
    if text.startswith('"'):
        return _decode_again(text, cell)
    if not text.startswith(("[", "{", "(")):
        return _or_cell(parse_printed(text), cell)
    try:
        return json.loads(text, object_pairs_hook=require_unique_keys)
    except DuplicateKeyError as error:
        raise InvalidRowError(f"{error}, wanted each key once") from None
    except (ValueError, RecursionError):
        return _python_literal(text, cell)


def _python_literal(text: str, cell: str) -> Any:
    try:
        if _WHOLE_NUMBERS.fullmatch(text):
            return [int(number) for number in text[1:-1].split()]
        if _NUMBERS.fullmatch(text):
            return [float(number) for number in re.split(r"[\s,]+", text[1:-1].strip())]
        value = _evaluate(text)
        _refuse_repeated_keys(text)
        return _split_joined_texts(value, text) if isinstance(value, list | tuple) else value
    except _NOT_LITERAL:
        return _or_cell(parse_printed(text), cell)


def _decode_again(text: str, cell: str) -> Any:
    """Return the list or mapping in a text that was encoded as JSON more than once; the cell if there is none."""
    try:
        inner = json.loads(text)
    except ValueError:
        return cell
    parsed = parse_cell(inner) if isinstance(inner, str) else cell
    return cell if isinstance(parsed, str) else parsed


def _or_cell(printed: Any, cell: str) -> Any:
    return cell if printed is None else printed


def _split_joined_texts(value: list[Any] | tuple[Any, ...], text: str) -> Any:
    """Split texts that Python joined because a printed NumPy array has no commas; refuse an ambiguous list."""
    texts = [token.string for token in _tokens(text) if token.type == tokenize.STRING]
    if len(texts) <= sum(isinstance(item, str | bytes) for item in value) or not _is_flat(value):
        return value
    if len(value) == 1:
        return [_evaluate(item) for item in texts]
    raise InvalidRowError(f"{len(texts)} texts in a list of {len(value)}: a comma is missing between two of them")


def _refuse_repeated_keys(text: str) -> None:
    """Refuse a Python dictionary that gives a key twice."""
    if not text.startswith("{"):
        return
    for node in ast.walk(ast.parse(text, mode="eval")):
        keys = [key.value for key in getattr(node, "keys", ()) if isinstance(key, ast.Constant)]
        if (key := next((key for key in keys if keys.count(key) > 1), None)) is not None:
            raise InvalidRowError(f"the key {key!r} is given twice, wanted each key once")


def _is_flat(value: list[Any] | tuple[Any, ...]) -> bool:
    return not any(isinstance(item, list | tuple | dict | set) for item in value)


def _tokens(text: str) -> list[tokenize.TokenInfo]:
    try:
        return list(tokenize.generate_tokens(io.StringIO(text).readline))
    except tokenize.TokenError as error:
        raise SyntaxError(str(error)) from error


def _evaluate(text: str) -> Any:
    # Unknown escapes stay unchanged; the warnings about them are meant for programmers.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.literal_eval(text)
