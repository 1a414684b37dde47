"""Convert the relevance judgments of a row to the form of the samples table."""

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from metric_core.records import finite_number
from tasks.runtime.wording import describe_value
from tasks.sources.cells.ids import as_id
from tasks.sources.readers.bad_rows import InvalidRowError

PASSAGE_KEYS = (
    *("passage_id", "doc_id", "docid", "docno", "document_id", "chunk_id", "corpus_id", "corpus-id", "pid", "passage"),
)
GRADE_KEYS = ("grade", "relevance", "rel", "score", "label", "judgment", "judgement", "gain")
WANTED = 'a mapping of passage id to grade, as {"guide-7": 2}'


def as_judgments(value: Any) -> list[dict[str, Any]]:
    """Return judgments in the form of the samples table: ids with their grades, which are finite numbers.

    Accepted are a mapping of id to grade, a list of pairs, and a list of objects with an id and a grade.

    >>> as_judgments({"a": 2, "b": "0.5", "c": True})
    [{'id': 'a', 'grade': 2.0}, {'id': 'b', 'grade': 0.5}, {'id': 'c', 'grade': 1.0}]
    >>> as_judgments([["a", 2], [7, 0]]) == as_judgments([{"doc_id": "a", "rel": 2}, {"doc_id": 7, "rel": 0}])
    True

    Raises:
        InvalidRowError: The value has another form, a grade is not one (see `parse_grade`), or an id has two grades.
    """
    grades: dict[str, float] = {}
    for number, (name, given) in enumerate(_pairs(value), start=1):
        passage = as_id(name, f"the id of judgment {number} is", "a text or a whole number")
        try:
            grade = parse_grade(given)
        except InvalidRowError as invalid:
            raise InvalidRowError(f"judgment {number} ({passage!r}): {invalid.problem}") from None
        if grades.setdefault(passage, grade) != grade:
            problem = f"the passage {passage!r} has the grades {grades[passage]:g} and {grade:g}, wanted one grade each"
            raise InvalidRowError(problem)
    return table_form(grades)


def parse_grade(value: Any) -> float:
    """Return a grade of relevance as a number.

    A grade is any number that is finite as a 64-bit float, also a negative one or a fraction; true is 1 and false is 0.
    A text may spell it.

    >>> parse_grade(2), parse_grade(-1.5), parse_grade("2"), parse_grade(True)
    (2.0, -1.5, 2.0, 1.0)

    Raises:
        InvalidRowError: The value is null, infinite, not a number, or an integer that is too large for a float.
    """
    number = float(value) if isinstance(value, bool) else None
    if number is None and isinstance(value, int | float | Decimal | str):
        number = finite_number(value)
    if number is None:
        raise InvalidRowError(f"the grade is {describe_value(value)}, wanted a finite number")
    return number


def table_form(grades: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return grades by passage id in the form of the samples table."""
    return [{"id": name, "grade": grade} for name, grade in grades.items()]


def _pairs(value: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(value, Mapping):
        return value.items()
    if not isinstance(value, list | tuple):
        raise InvalidRowError(f"got {describe_value(value)}, wanted {WANTED}")
    return _listed(value)


def _listed(value: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
    for number, item in enumerate(value, start=1):
        if isinstance(item, Mapping):
            names = [key for key in ("id", *PASSAGE_KEYS) if item.get(key) is not None]
            grades = sorted((key for key in GRADE_KEYS if key in item), key=lambda key: item[key] is None)
            if names and grades:
                yield item[names[0]], item[grades[0]]
                continue
        elif isinstance(item, list | tuple) and len(item) == 2:
            yield item[0], item[1]
            continue
        raise InvalidRowError(f"item {number} is {describe_value(item)}, wanted an id with a grade, or {WANTED}")
