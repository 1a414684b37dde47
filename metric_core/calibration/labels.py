"""Read labels of rows by people as numbers: yes or no, or a grade."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from metric_core.declarations.metric import MetricRequest
from metric_core.errors import ConfigError, SourceError
from metric_core.parsing.model_families import FAMILIES
from metric_core.records import finite_number
from metric_core.statistics.agreement import interval_alpha
from metric_core.statistics.resampling import LEVEL

_WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
_MOST_EXAMPLES = 6
_PREFIXES = ("label_", "human_", "gold_")
_SHORTEST_NAME = 5
_MODEL_PREFIX = "model:"
# People are called Claude and Gemma: a family counts with a version only, such as claude-3 and org/gemma2.
_VERSIONED = re.compile(rf"(?:.*/)?(?:{'|'.join(FAMILIES.values())})(?![a-z ])[^/]*\d.*")


class Scale(StrEnum):
    """Kind of labels."""

    BINARY = "binary"
    GRADED = "graded"


@dataclass(frozen=True, slots=True)
class LabelRules:
    """Rules for reading a column of labels.

    Args:
        positive: Label that means yes, while all others mean no; None if labels are numbers, yes/no or true/false.
        span: Lowest and highest grade; None to use the bounds of the metric, or else the grades that occur.
    """

    column: str
    positive: str | None = None
    span: tuple[float, float] | None = None


@dataclass(frozen=True, slots=True)
class Labels:
    """Labels of rows.

    Args:
        values: Row id -> 0 or 1, or the grade.
        unlabelled: Number of rows without a label.
    """

    scale: Scale
    values: Mapping[str, float]
    unlabelled: int


def read_labels(cells: Mapping[str, object], rules: LabelRules) -> Labels:
    """Read the labels of rows; empty cells are not labels.

    Args:
        cells: Row id -> cell of the column.

    Raises:
        SourceError: If a label cannot be read, or all labels are the same.
        ConfigError: If no row has the positive label, or grades are out of range.

    >>> read_labels({"a": "yes", "b": "no", "c": None}, LabelRules("faithful")).values
    {'a': 1.0, 'b': 0.0}
    >>> read_labels({"a": 1, "b": 4, "c": 2.5}, LabelRules("stars")).scale
    <Scale.GRADED: 'graded'>
    """
    given = {row_id: cell for row_id, cell in cells.items() if not _is_blank(cell)}
    values = {row_id: _parse_label(cell, rules) for row_id, cell in given.items()}
    distinct = sorted(set(values.values()))
    if not distinct:
        raise SourceError(f"the column {rules.column!r} has no labels: all {len(cells)} rows are empty there")
    if len(distinct) == 1 and rules.positive is not None and distinct[0] == 0:
        examples = sorted({str(cell) for cell in given.values()})[:_MOST_EXAMPLES]
        raise ConfigError(f"no label in {rules.column!r} is {rules.positive!r}; there are {', '.join(examples)}")
    if len(distinct) == 1:
        raise SourceError(
            f"all {len(values)} labels in {rules.column!r} are the same: agreement cannot be distinguished from "
            f"chance. {describe_equal_labels(len(values))}"
        )
    scale = Scale.BINARY if set(distinct) == {0.0, 1.0} and rules.span is None else Scale.GRADED
    if rules.span is not None and not rules.span[0] <= distinct[0] <= distinct[-1] <= rules.span[1]:
        raise ConfigError(
            f"labels in {rules.column!r} go from {distinct[0]:g} to {distinct[-1]:g}, "
            f"which is outside of the range {rules.span[0]:g} to {rules.span[1]:g}"
        )
    return Labels(scale, values, len(cells) - len(values))


@dataclass(frozen=True, slots=True)
class GivenLabel:
    """A label that a person gave.

    Args:
        label: 0 or 1, or a grade; None if the person could not decide.
        given: Time at which it was given, in ISO 8601; a later label of the same person replaces an earlier one. Of two
            at one time, neither does: the item is contested unless they are equal.
        is_final: True if it settles what other people disagreed on.
    """

    item: str
    annotator: str
    label: float | None
    given: str
    is_final: bool = False


@dataclass(frozen=True, slots=True)
class SettledLabels:
    """Labels on which several people agree, and items on which they do not.

    Args:
        values: Item -> label.
        contested: Items on which people disagree, and nothing settles it.
        undecided: Number of items that nobody could decide.
        annotators: Labels by who gave them.
        shared: Number of items with the labels of several people, without those that settle a disagreement.
        alpha: Krippendorff's alpha over these; None without any, or if all labels are the same.
    """

    values: Mapping[str, float]
    contested: tuple[str, ...]
    undecided: int
    annotators: Mapping[str, Sequence[float]]
    shared: int
    alpha: float | None


def settle_labels(given: Iterable[GivenLabel]) -> SettledLabels:
    """Return one label per item: the final one, else that of the majority, or the mean of grades at most 1 apart.

    >>> labels = [("a", "anna", 1), ("a", "ben", 1), ("b", "anna", 1), ("b", "ben", 0), ("c", "ben", None)]
    >>> found = settle_labels(GivenLabel(*label, given="2026-11-26") for label in labels)
    >>> found.values, found.contested, found.undecided, found.alpha
    ({'a': 1.0}, ('b',), 1, 0.0)
    """
    latest = _find_latest(given)
    first: dict[str, list[float]] = defaultdict(list)
    finals: dict[str, set[float]] = defaultdict(set)
    for each in latest:
        if each.is_final:
            finals[each.item].update([] if each.label is None else [float(each.label)])
        else:
            first[each.item].extend([] if each.label is None else [float(each.label)])
    final = {item: min(labels) if len(labels) == 1 else None for item, labels in finals.items() if labels}
    settled = {item: _settle(labels) for item, labels in first.items() if labels} | final
    shared = [labels for labels in first.values() if len(labels) > 1]
    annotators: dict[str, list[float]] = defaultdict(list)
    for each in latest:
        if each.label is not None:
            annotators[each.annotator].append(each.label)
    return SettledLabels(
        values={item: label for item, label in settled.items() if label is not None},
        contested=tuple(item for item, label in settled.items() if label is None),
        undecided=len(first.keys() - settled.keys()),
        annotators=dict(annotators),
        shared=len(shared),
        alpha=interval_alpha(shared),
    )


def _find_latest(given: Iterable[GivenLabel]) -> list[GivenLabel]:
    """Return the last label of each person about each item, and all different ones that have the same time."""
    latest: dict[tuple[str, str, bool], dict[float | None, GivenLabel]] = {}
    for each in sorted(given, key=lambda each: (_time(each.given), -1.0 if each.label is None else each.label)):
        found = latest.setdefault((each.item, each.annotator, each.is_final), {})
        if any(_time(other.given) < _time(each.given) for other in found.values()):
            found.clear()
        found[each.label] = each
    return [label for found in latest.values() for label in found.values()]


def _time(text: str) -> datetime:
    time = datetime.fromisoformat(text)
    return time if time.tzinfo is not None else time.replace(tzinfo=UTC)


def _settle(labels: list[float]) -> float | None:
    """Return the label of the majority, or the mean of grades that are close; None if people disagree."""
    label, count = Counter(labels).most_common(1)[0]
    if 2 * count > len(labels):
        return label
    is_close = max(labels) - min(labels) <= 1 and not set(labels) <= {0.0, 1.0}
    return sum(labels) / len(labels) if is_close else None


def describe_equal_labels(labels: int) -> str:
    """Return what is known of rows if all labels of a random sample are the same: the limit of Clopper and Pearson.

    >>> describe_equal_labels(60)
    'If these rows are a random sample, at least 95.1 % of all rows have this label (95 % limit).'
    """
    percent = math.floor(1000 * (1 - LEVEL) ** (1 / labels)) / 10
    return f"If these rows are a random sample, at least {percent} % of all rows have this label (95 % limit)."


def labels_by_annotator(cells: Mapping[str, object], labels: Labels) -> dict[str, list[float]]:
    """Return the labels by the name of who gave them; labels without a name are left out.

    Args:
        cells: Row id -> cell of the column with the names.
    """
    found: dict[str, list[float]] = defaultdict(list)
    for row, label in labels.values.items():
        if not _is_blank(cells.get(row)):
            found[str(cells[row]).strip()].append(label)
    return dict(found)


def guess_metric(label: str, possible: Sequence[MetricRequest]) -> MetricRequest:
    """Return the metric that labels are about, guessed from the name of their column.

    Raises:
        ConfigError: No metric has such a name, or several have.
    """
    name = label.casefold().replace("-", "_")
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    matching = [metric for metric in possible if _is_about(name, metric)]
    if len(matching) == 1:
        return matching[0]
    names = ", ".join(metric.key for metric in matching or possible)
    raise ConfigError(f"which metric are the labels in {label!r} about? Name it with --metric: {names}")


def _is_about(label: str, request: MetricRequest) -> bool:
    names = (request.metric.name, *request.metric.aliases)
    return any(name in label or (len(label) >= _SHORTEST_NAME and name.startswith(label)) for name in names)


def describe_model_annotators(annotators: Mapping[str, int], judge: str) -> str:
    """Return a warning if labels come from models, as far as their names tell; else an empty text.

    Args:
        annotators: Number of labels by the name of who gave them.
        judge: Name of the judge's model.

    >>> describe_model_annotators({"anna": 40, "Claude": 5, "gpt-4o": 20}, "qwen3")
    "20 labels are by a model ('gpt-4o'): the figures are about agreement with it, not with people"
    >>> describe_model_annotators({"Qwen3": 60}, "org/qwen3")
    "60 labels are by the judge itself ('Qwen3'): its agreement with them says nothing about people"
    """
    own = {judge.casefold(), judge.casefold().rpartition("/")[2]} - {""}
    names = {name: name.casefold().removeprefix(_MODEL_PREFIX).strip() for name in annotators}
    of_judge = [name for name, plain in names.items() if plain in own]
    if of_judge:
        count = sum(annotators[name] for name in of_judge)
        return (
            f"{count} labels are by the judge itself ({_quote(of_judge)}): its agreement with them says nothing about "
            "people"
        )
    models = [
        name
        for name, plain in names.items()
        if name.casefold().startswith(_MODEL_PREFIX) or _VERSIONED.fullmatch(plain) is not None
    ]
    count = sum(annotators[name] for name in models)
    if not models:
        return ""
    return f"{count} labels are by a model ({_quote(models)}): the figures are about agreement with it, not with people"


def _quote(names: list[str]) -> str:
    return ", ".join(repr(name) for name in names[:_MOST_EXAMPLES])


def _is_blank(cell: Any) -> bool:
    return (
        cell is None or (isinstance(cell, str) and not cell.strip()) or (isinstance(cell, float) and math.isnan(cell))
    )


def _parse_label(cell: Any, rules: LabelRules) -> float:
    if rules.positive is not None:
        return float(_is_positive(cell, rules.positive))
    if isinstance(cell, bool):
        return float(cell)
    if isinstance(cell, str) and (word := cell.strip().casefold()) in _WORDS:
        return _WORDS[word]
    if isinstance(cell, int | float | str) and (number := finite_number(cell)) is not None:
        return number
    raise SourceError(
        f"the label {str(cell)[:60]!r} in {rules.column!r} is neither a number nor yes, no, true or false; "
        "use --positive LABEL to set the label that means yes"
    )


def _is_positive(cell: Any, positive: str) -> bool:
    """Return whether a cell equals the positive label in any notation: 1, 1.0 and true are equal."""
    word = positive.strip().casefold()
    if str(cell).strip().casefold() == word:
        return True
    number = _WORDS.get(word)
    try:
        number = float(word) if number is None else number
        return not isinstance(cell, str) and float(cell) == number
    except (TypeError, ValueError, OverflowError):
        return False
