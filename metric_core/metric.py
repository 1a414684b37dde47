"""What a metric declares beside its formula. Ours and users' own metrics are objects of this one class."""

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from metric_core.errors import MetricParameterError
from metric_core.evidence import Evidence, MissingProductError
from metric_core.judge_questions import RatingRequest
from metric_core.records import Direction, Sample, Score
from metric_core.stages import Product

Parameters: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter of a metric.

    Args:
        summary: one line for people.
        default: its value if nobody sets it; `required` parameters have none.
        choices: the allowed values, where they are few.
        check: returns what was wanted if it does not accept a value, else None.
        required: the user must give it.
    """

    summary: str
    default: Any = None
    choices: tuple[Any, ...] = ()
    check: Callable[[Any], str | None] | None = None
    required: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A metric: its formula over the evidence of a row, and everything that others must know about it.

    Args:
        name: the name that users write.
        summary: one line for people.
        source: where the formula comes from.
        columns: the sample columns that the arithmetic needs, for the given parameters.
        products: the products that the formula reads, for the given parameters.
        compute: evidence of a row and complete parameters -> score.
        direction: whether more is better.
        bounds: least and greatest value, for the given parameters; None where the scale is the user's or the row's.
        undefined: reason -> when it happens, for every outcome of the formula that is no number and no failure. A
            column or product that is missing has a reason of its own.
        aliases: other names for it.
        parameters: its parameters by name.
        check: returns what was wanted if the parameters do not go together, else None.
        ratings: the rating questions it asks about a sample, for metrics that need Product.RATINGS; or the score
            itself where no question is needed.
        language_model: it needs a judge that is a language model.
        in_default_suite: it is computed when the user names no metrics and the data has its columns.
        family: the file it lives in, for grouping.
        origin: the name under which it is found, for metrics that are not ours; set where it is found.
        code: digest of its code, likewise.
    """

    name: str
    summary: str
    source: str
    family: str
    columns: Callable[[Parameters], tuple[str, ...]]
    products: Callable[[Parameters], tuple[Product, ...]]
    compute: Callable[["MetricRequest", Evidence], Score]
    direction: Direction = Direction.HIGHER
    bounds: Callable[[Parameters], tuple[float, float] | None] = lambda _: (0.0, 1.0)
    undefined: Mapping[str, str]
    aliases: tuple[str, ...] = ()
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    check: Callable[[Parameters], str | None] | None = None
    ratings: Callable[[Sample, Parameters], Sequence[RatingRequest] | Score] | None = None
    language_model: bool = False
    in_default_suite: bool = True
    origin: str = ""
    code: str = ""

    def request(self, parameters: Parameters | None = None, key: str | None = None) -> "MetricRequest":
        """This metric with parameters, checked and completed by the defaults.

        Raises:
            MetricParameterError: a parameter that does not exist, lacks or has a value that it can not take.
        """
        given = dict(parameters or {})
        for name in given:
            if name not in self.parameters:
                known = ", ".join(self.parameters) or "none"
                raise MetricParameterError(f"{self.name} has no parameter {name!r}; it has: {known}")
        complete: dict[str, Any] = {}
        for name, parameter in self.parameters.items():
            if parameter.required and name not in given:
                raise MetricParameterError(f"{self.name} needs the parameter {name!r}: {parameter.summary}")
            value = given.get(name, parameter.default)
            if isinstance(value, list):  # files have lists where defaults are tuples
                value = tuple(value)
            wanted = None
            if name in given and parameter.choices and value not in parameter.choices:
                wanted = "one of " + ", ".join(map(repr, parameter.choices))
            elif name in given and parameter.check is not None:
                wanted = parameter.check(value)
            if wanted is not None:
                raise MetricParameterError(f"{self.name}: {name} must be {wanted}, got {value!r}")
            complete[name] = value
        if self.check is not None and (wanted := self.check(complete)) is not None:
            raise MetricParameterError(f"{self.name} needs {wanted}, got {given!r}")
        return MetricRequest(self, complete, key or _default_key(self, complete))


@dataclass(frozen=True, slots=True)
class MetricRequest:
    """A metric as asked for: with complete parameters and the name under which its scores are kept.

    Args:
        metric: the metric.
        parameters: all its parameters.
        key: its name in score tables and reports: the metric's own, with the parameters that differ from their
            defaults in parentheses, or the user's.
    """

    metric: Metric
    parameters: Parameters
    key: str

    @property
    def columns(self) -> tuple[str, ...]:
        """The sample columns it needs."""
        return self.metric.columns(self.parameters)

    @property
    def products(self) -> tuple[Product, ...]:
        """The products it reads."""
        return self.metric.products(self.parameters)

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Least and greatest value."""
        return self.metric.bounds(self.parameters)

    def rating_requests(self, sample: Sample) -> Sequence[RatingRequest] | Score:
        """The rating questions about a sample, or the score itself where no question is needed."""
        if self.metric.ratings is None:
            return ()
        try:
            self._require_columns(Evidence(sample))
        except MissingProductError as missing:
            return missing.outcome
        return self.metric.ratings(sample, self.parameters)

    def score(self, evidence: Evidence) -> Score:
        """The score of a row; undefined where it lacks a column, the gap's own outcome where a product is missing."""
        try:
            self._require_columns(evidence)
            return self.metric.compute(self, evidence)
        except MissingProductError as missing:
            return missing.outcome

    def _require_columns(self, evidence: Evidence) -> None:
        for column in self.columns:
            evidence.column(column)


def constant(*values: Any) -> Callable[[Parameters], tuple[Any, ...]]:
    """Declares columns or products that do not depend on the parameters.

    >>> constant("response", "reference")({})
    ('response', 'reference')
    """
    return lambda _: values


def require_number_in(least: float, greatest: float = math.inf) -> Callable[[Any], str | None]:
    """A check that accepts finite numbers from `least` to `greatest`.

    >>> require_number_in(0, 1)(1.5)
    'a number from 0 to 1'
    """

    def check(value: Any) -> str | None:
        good = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max
        if good and least <= value <= greatest:
            return None
        return f"a number of at least {least:g}" if greatest == math.inf else f"a number from {least:g} to {greatest:g}"

    return check


def require_positive_integer(value: Any) -> str | None:
    """A check that accepts whole numbers from 1.

    >>> require_positive_integer(0)
    'a whole number of at least 1'
    """
    good = isinstance(value, int) and not isinstance(value, bool) and value >= 1
    return None if good else "a whole number of at least 1"


def require_text(value: Any) -> str | None:
    """A check that accepts texts that are not blank.

    >>> require_text(" ")
    'a text that is not empty'
    """
    return None if isinstance(value, str) and value.strip() else "a text that is not empty"


def allow_none(check: Callable[[Any], str | None]) -> Callable[[Any], str | None]:
    """A check that accepts None beside what `check` accepts.

    >>> allow_none(require_positive_integer)(None) is None
    True
    >>> allow_none(require_positive_integer)(0)
    'a whole number of at least 1 or nothing'
    """

    def check_or_none(value: Any) -> str | None:
        wanted = None if value is None else check(value)
        return None if wanted is None else f"{wanted} or nothing"

    return check_or_none


def _default_key(metric: Metric, parameters: Parameters) -> str:
    changed = [
        f"{name}={_format_value(value)}"
        for name, value in parameters.items()
        if value != metric.parameters[name].default and _is_short(value)
    ]
    return f"{metric.name}({','.join(changed)})" if changed else metric.name


def _is_short(value: Any) -> bool:
    return isinstance(value, str | int | float | tuple | list) and len(str(value)) <= 32


def _format_value(value: Any) -> str:
    return "/".join(map(str, value)) if isinstance(value, tuple | list) else str(value)
