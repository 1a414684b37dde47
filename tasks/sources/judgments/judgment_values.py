"""Convert the relevance judgments of a row to the form of the samples table."""

import math
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from tasks.runtime.wording import describe_value
from tasks.sources.bad_rows import UnfitError

_ID_KEYS = ("id", "passage_id", "doc_id", "docid", "document_id", "chunk_id", "corpus_id", "corpus-id")
_GRADE_KEYS = ("grade", "relevance", "rel", "score", "label")
WANTED = 'a mapping of passage id to grade, as {"guide-7": 2}'


def as_judgments(value: Any) -> list[dict[str, Any]]:
    """Return judgments in the form of the samples table: ids with their grades, which are finite numbers.

    Accepted are a mapping of id to grade, a list of pairs, and a list of objects with an id and a grade. An id without
    a grade is unjudged: Arrow formats have every key of the whole table in every row.

    >>> as_judgments({"a": 2, "b": None, "c": True})
    [{'id': 'a', 'grade': 2.0}, {'id': 'c', 'grade': 1.0}]
    >>> as_judgments([["a", 2], [7, 0]]) == as_judgments([{"doc_id": "a", "rel": 2}, {"doc_id": 7, "rel": 0}])
    True

    Raises:
        UnfitError: The value has another form, a grade is no finite number, or an id has two grades.
    """
    grades: dict[str, float] = {}
    for number, (name, given) in enumerate(_pairs(value), start=1):
        if given is None or (isinstance(given, float) and math.isnan(given)):
            continue
        passage, grade = _as_name(name, number), _as_grade(given, number)
        if grades.setdefault(passage, grade) != grade:
            problem = f"the passage {passage!r} has the grades {grades[passage]:g} and {grade:g}, wanted one grade each"
            raise UnfitError(problem)
    return table_form(grades)


def table_form(grades: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return grades by passage id in the form of the samples table."""
    return [{"id": name, "grade": grade} for name, grade in grades.items()]


def _pairs(value: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(value, Mapping):
        return value.items()
    if not isinstance(value, list | tuple):
        raise UnfitError(f"got {describe_value(value)}, wanted {WANTED}")
    return _listed(value)


def _listed(value: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    for number, item in enumerate(value, start=1):
        if isinstance(item, Mapping):
            names = [key for key in _ID_KEYS if item.get(key) is not None]
            grades = [key for key in _GRADE_KEYS if key in item]
            if names and grades:
                yield item[names[0]], item[grades[0]]
                continue
        elif isinstance(item, list | tuple) and len(item) == 2:
            yield item[0], item[1]
            continue
        raise UnfitError(f"item {number} is {describe_value(item)}, wanted an id with a grade, or {WANTED}")


def _as_name(name: Any, number: int) -> str:
    if isinstance(name, str):
        return name
    if isinstance(name, int | float) and not isinstance(name, bool) and math.isfinite(name) and name == int(name):
        return str(int(name))
    raise UnfitError(f"the id of judgment {number} is {describe_value(name)}, wanted a text or a whole number")


def _as_grade(grade: Any, number: int) -> float:
    if isinstance(grade, int | float | Decimal) and math.isfinite(grade):
        return float(grade)
    raise UnfitError(f"the grade of judgment {number} is {describe_value(grade)}, wanted a finite number")
