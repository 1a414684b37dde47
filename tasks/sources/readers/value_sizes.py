"""Estimate the sizes of Arrow values as Python values, without creating them.

A few bytes of an Arrow array can represent much: many values share a text of a dictionary, a run or a view, and a list
of nulls has no content at all.
"""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from metric_core.errors import SourceError

Sizes: TypeAlias = float | npt.NDArray[np.float64]
"""The size of each value of an array; one number if all are equal."""

_REFERENCE = 8.0
"""Size of a value of fixed width, and of what holds any value."""
_VIEW = np.dtype([("length", "<i4"), ("rest", "V12")])


def row_sizes(batch: pa.RecordBatch) -> npt.NDArray[np.float64]:
    """Return the approximate size of each row in bytes.

    >>> row_sizes(pa.record_batch({"text": pa.array(["ab", None]), "number": pa.array([1, 2])}))
    array([18., 16.])

    Raises:
        SourceError: A column has a type that rows cannot have.
    """
    sizes = np.zeros(batch.num_rows)
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        try:
            sizes += _value_sizes(column)
        except NotImplementedError as error:
            raise SourceError(
                f"the column {name!r} has the type {error}, which cannot be read; write it as a text, a number, a "
                "list or a struct"
            ) from None
    return sizes


def _value_sizes(array: pa.Array) -> Sizes:
    sizes_of = next((sizes_of for is_kind, sizes_of in _SIZES if is_kind(array.type)), None)
    if sizes_of is not None:
        return sizes_of(array)
    if pa.types.is_nested(array.type):
        raise NotImplementedError(array.type)
    return _REFERENCE


def _dictionary_sizes(array: pa.DictionaryArray) -> Sizes:
    return _taken(_value_sizes(array.dictionary), array.indices)


def _run_sizes(array: pa.RunEndEncodedArray) -> Sizes:
    positions = np.arange(array.offset, array.offset + len(array))
    return _taken(_value_sizes(array.values), pa.array(np.searchsorted(array.run_ends, positions, side="right")))


def _taken(sizes: Sizes, indices: pa.Array) -> Sizes:
    """Return the sizes of the values that the indices select; null selects none."""
    if isinstance(sizes, float):
        return sizes
    selected: Sizes = np.append(sizes, 0.0)[np.asarray(indices.cast(pa.int64()).fill_null(len(sizes)))]
    return selected


def _struct_sizes(array: pa.StructArray) -> Sizes:
    return sum((_value_sizes(array.field(index)) for index in range(array.type.num_fields)), _REFERENCE)


def _fixed_list_sizes(array: pa.FixedSizeListArray) -> Sizes:
    starts = (np.arange(len(array)) + array.offset) * array.type.list_size
    return _range_sizes([array.values], starts, starts + array.type.list_size)


def _list_view_sizes(array: pa.ListViewArray) -> Sizes:
    starts = np.asarray(array.offsets)
    return _range_sizes([array.values], starts, starts + np.asarray(array.sizes))


def _list_sizes(array: pa.ListArray) -> Sizes:
    offsets = np.asarray(array.offsets)
    return _range_sizes([array.values], offsets[:-1], offsets[1:])


def _map_sizes(array: pa.MapArray) -> Sizes:
    offsets = np.asarray(array.offsets)
    return _range_sizes([array.keys, array.items], offsets[:-1], offsets[1:])


def _range_sizes(values: Sequence[pa.Array], starts: npt.NDArray[Any], ends: npt.NDArray[Any]) -> Sizes:
    """Return the sizes of lists, or mappings, whose items are these ranges of the values."""
    each: Sizes = sum((_value_sizes(array) + _REFERENCE for array in values), 0.0)
    if isinstance(each, float):
        sizes: Sizes = (ends - starts) * each + _REFERENCE
    else:
        total = np.concatenate(([0.0], np.cumsum(each)))
        sizes = total[ends] - total[starts] + _REFERENCE
    return sizes


def _view_sizes(array: pa.Array) -> Sizes:
    views: npt.NDArray[Any] = np.frombuffer(array.buffers()[1], _VIEW, len(array), array.offset * _VIEW.itemsize)
    sizes: Sizes = views["length"] + _REFERENCE
    return sizes


def _text_sizes(array: pa.Array) -> Sizes:
    return np.asarray(pc.fill_null(pc.binary_length(array), 0), float) + _REFERENCE


_SIZES: tuple[tuple[Callable[[pa.DataType], bool], Callable[[Any], Sizes]], ...] = (
    (lambda kind: isinstance(kind, pa.BaseExtensionType), lambda array: _value_sizes(array.storage)),
    (pa.types.is_dictionary, _dictionary_sizes),
    (pa.types.is_run_end_encoded, _run_sizes),
    (pa.types.is_struct, _struct_sizes),
    (pa.types.is_fixed_size_list, _fixed_list_sizes),
    (lambda kind: pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind), _list_view_sizes),
    (lambda kind: pa.types.is_list(kind) or pa.types.is_large_list(kind), _list_sizes),
    (pa.types.is_map, _map_sizes),
    (lambda kind: pa.types.is_string_view(kind) or pa.types.is_binary_view(kind), _view_sizes),
    (pa.types.is_fixed_size_binary, lambda array: array.type.byte_width + _REFERENCE),
    (lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind), _text_sizes),
    (lambda kind: pa.types.is_binary(kind) or pa.types.is_large_binary(kind), _text_sizes),
)
"""Kind of array -> the sizes of its values; values of all other kinds have a fixed size, unless they are nested."""
