"""Find the retrieved contexts that citation labels name."""

import re
from collections.abc import Collection, Iterable

from metric_core.claims.citation_forms import NUMBERED
from metric_core.claims.cited_files import file_of, is_same_file, page_of
from metric_core.records import Sample

_FILE_SEARCH = re.compile(r"\d+:(?P<index>\d+)\u2020(?P<source>.*)")
"""The label of 【4:0†source】: message, index of the result from 0, and name of the file or "source"."""


def cited_contexts(labels: Collection[str], sample: Sample, first: int = 1) -> tuple[int, ...]:
    """Return the indices of the retrieved contexts that labels cite, in ascending order.

    A label that is the id of a context names it, in upper or lower case; one that is a file or a URL names all contexts
    of that file or page, as far as their ids say so; otherwise a number k, alone or after a word such as "doc", names
    the k-th context. Labels that name no context are left out.

    Args:
        first: Number of the first context: see `first_number`.

    >>> row = Sample(retrieved_contexts=("a", "b", "c"), retrieved_context_ids=("x9", "intro", "z"))
    >>> cited_contexts(("1", "doc-3", "intro", "7"), row)
    (0, 1, 2)
    >>> row = Sample(retrieved_contexts=("a", "b"), retrieved_context_ids=("hr/leave.md#1", "hr/leave.md#2"))
    >>> cited_contexts(("leave.md",), row), cited_contexts(("hr/leave.md#2",), row), cited_contexts(("0",), row, 0)
    ((0, 1), (1,), (0,))
    """
    ids = _ids(sample)
    count = len(sample.retrieved_contexts or ())
    cited = {index for label in labels for index in _named(label, ids, first)}
    return tuple(sorted(index for index in cited if 0 <= index < count))


def first_number(labels: Iterable[str], sample: Sample) -> int:
    """Return the number by which a response cites the first context: 0 if its numbers say so, otherwise 1.

    They do if one of them is 0, and none is the number of contexts, which is one too many when counting from 0.

    Args:
        labels: Labels of all citation markers of the response.
        sample: Row with the contexts and their ids; a label that is an id does not count as a number.

    >>> row = Sample(retrieved_contexts=("a", "b", "c"))
    >>> first_number(("1", "2"), row), first_number(("0", "2"), row), first_number(("doc-0",), row)
    (1, 0, 0)
    >>> first_number(("0", "1", "3"), row)
    1
    """
    ids = {name.casefold() for name in _ids(sample)}
    found = (NUMBERED.match(label) for label in labels if label.casefold() not in ids)
    numbers = {int(numbered[1]) for numbered in found if numbered is not None}
    count = len(sample.retrieved_contexts or ())
    return 0 if 0 in numbers and (not count or count not in numbers) else 1


def _ids(sample: Sample) -> list[str]:
    return [str(name) for name in sample.retrieved_context_ids or ()]


def _named(label: str, ids: Collection[str], first: int) -> list[int]:
    """Return the indices that a label names, which may be beyond the last context."""
    for same in (str, str.casefold):
        if equal := [index for index, name in enumerate(ids) if same(name) == same(label)]:
            return equal[:1]
    page = page_of(label)
    if page is not None:
        return [index for index, name in enumerate(ids) if page_of(name) == page]
    result = _FILE_SEARCH.fullmatch(label)
    name = label if result is None else result["source"]
    file = file_of(name)
    if file is not None:
        files = [(index, file_of(each)) for index, each in enumerate(ids)]
        if same_file := [index for index, other in files if other is not None and is_same_file(file, other)]:
            return same_file
    if result is not None:
        return [int(result["index"])]
    numbered = NUMBERED.match(label)
    return [] if numbered is None else [int(numbered[1]) - first]
