"""Define the class of all metrics, builtin and user-defined: a formula with its declarations."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from metric_core.columns import ColumnType
from metric_core.declarations.declared_reads import Declarations, DeclaredEvidence, DeclaredSample
from metric_core.declarations.default_keys import default_key
from metric_core.declarations.diagnosis_class import ScoreClass
from metric_core.declarations.own_products import OwnProduct
from metric_core.declarations.parameter_values import ParameterValues
from metric_core.declarations.score_checks import score_problem
from metric_core.errors import AssayError, MetricError, MetricParameterError
from metric_core.evidence import Evidence, MissingProductError, has_premise, premises_of
from metric_core.prompts.judge_questions import Kind, RatingRequest
from metric_core.reasons import missing_column, wrong_type
from metric_core.records import Direction, Sample, Score, VerdictRequest
from metric_core.stages import Product, any_judged, closure

Parameters: TypeAlias = Mapping[str, Any]
OwnColumns: TypeAlias = Mapping[str, ColumnType]

_MOST_ROUNDS = 20
"""Rounds of requested verdicts after which a metric that follows up is taken to have no end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A parameter of a metric.

    Args:
        summary: Description in one line.
        default: Default value; ignored if the parameter is required.
        choices: Allowed values; empty if they are not enumerated.
        check: Validator that returns a description of valid values if it rejects a value, else None.
        required: True if the user must set the parameter.
        is_function: True if a value names a function, `module:attribute`, which is in its place in `request.values`.
    """

    summary: str
    default: Any = None
    choices: tuple[Any, ...] = ()
    check: Callable[[Any], str | None] | None = None
    required: bool = False
    is_function: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A metric: a formula over the evidence of a row, with everything that other packages need to know about it.

    Args:
        name: Name of the metric.
        summary: Description in one line.
        question: Question to people who label rows, with parameters in braces: a yes is a high score. Empty: they are
            asked whether the row deserves a high score.
        source: Publication or project that defines the formula.
        columns: Function from parameters to the sample columns that the formula needs.
        products: Function from parameters to the products that the formula reads.
        compute: Function from a request and the evidence of a row to a score.
        direction: Direction of improvement.
        bounds: Function from parameters to the least and the greatest value; it returns None if the user or the row
            defines the scale.
        undefined: Reason -> description, for every undefined outcome of the formula. Missing columns and products
            have separate reasons. Any other reason ends the run.
        failed: Reason -> description, for failed outcomes of the formula other than an unusable verdict, rating,
            reply or vector.
        own_columns: Name -> type of columns of the data beyond those of a sample, or a function from parameters to such
            a mapping. A row without a value of that type is undefined.
        own_products: Products that the plugin computes itself, which the formula reads by `evidence.product(name)`.
        optional_columns: Function from parameters to the sample columns that the formula uses if the data has them.
        optional_products: Products that the formula uses as far as other metrics of the run read them.
        stand_ins: Needed column -> optional columns that can each replace it.
        aliases: Other names of the metric.
        parameters: Name -> parameter.
        check: Validator that returns a description of valid combinations if the parameters conflict, else None.
        ratings: Function from a sample and parameters to the rating questions, for metrics that read
            Product.RATINGS; it returns the score if no question is needed.
        question_kinds: Kinds of the rating questions; those of `metric_core.prompts.judge_questions` may be left out by
            user-defined metrics, their own must be named.
        verdicts: Function from the claims of a row and parameters to the verdicts that the metric wants judged, for
            metrics that read Product.REQUESTED_VERDICTS. It is called twice, and must return the same both times.
        follows_up: True if `verdicts` decides by the verdicts that it has requested what else it requests. It is called
            again, with these in `evidence.requested` and `evidence.decision(request)`, until it requests nothing new.
        language_model: True if the metric needs a language model as judge.
        tolerated: Worst value of a row that passes a gate without a rule about the metric; None if it has no such rule.
        diagnosis: Class of the diagnosis that the score of a row decides; None without one.
        in_default_suite: True if the metric is computed by default when the data has its columns.
        family: Name of the module that defines the metric, for grouping.
        origin: Import name of a user-defined metric; set by the loader.
        code: Digest of the code of a user-defined metric; set by the loader.
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
    failed: Mapping[str, str] = field(default_factory=dict)
    own_columns: OwnColumns | Callable[[Parameters], OwnColumns] = field(default_factory=dict)
    own_products: tuple[OwnProduct, ...] = ()
    optional_columns: Callable[[Parameters], tuple[str, ...]] = lambda _: ()
    optional_products: tuple[Product, ...] = ()
    stand_ins: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    aliases: tuple[str, ...] = ()
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    check: Callable[[Parameters], str | None] | None = None
    ratings: Callable[[Sample, Parameters], Sequence[RatingRequest] | Score] | None = None
    question_kinds: tuple[Kind, ...] = ()
    verdicts: Callable[[Evidence, Parameters], Sequence[VerdictRequest]] | None = None
    follows_up: bool = False
    language_model: bool = False
    tolerated: float | None = None
    diagnosis: ScoreClass | None = None
    in_default_suite: bool = True
    question: str = ""
    origin: str = ""
    code: str = ""

    def request(self, parameters: Parameters | None = None, key: str | None = None) -> "MetricRequest":
        """Return a request for this metric, with validated parameters completed by defaults.

        Raises:
            MetricParameterError: If a parameter is unknown, missing or invalid.
        """
        given = dict(parameters or {})
        for name in given:
            if name not in self.parameters:
                known = ", ".join(self.parameters) or "none"
                raise MetricParameterError(f"{self.name} has no parameter {name!r}; it has: {known}")
        completed = ParameterValues()
        for name, parameter in self.parameters.items():
            if parameter.required and name not in given:
                raise MetricParameterError(f"{self.name} needs the parameter {name!r}: {parameter.summary}")
            value = given.get(name, parameter.default)
            if isinstance(value, list):  # configuration files have lists where defaults are tuples
                value = tuple(value)
            wanted = None
            if name in given and parameter.choices and value not in parameter.choices:
                wanted = "one of " + ", ".join(map(repr, parameter.choices))
            elif name in given and parameter.check is not None:
                wanted = parameter.check(value)
            if wanted is not None:
                raise MetricParameterError(f"{self.name}: {name} must be {wanted}, got {value!r}")
            completed[name] = value
        if self.check is not None and (wanted := self.check(completed)) is not None:
            raise MetricParameterError(f"{self.name} needs {wanted}, got {given!r}")
        defaults = {name: parameter.default for name, parameter in self.parameters.items()}
        return MetricRequest(self, completed, key or default_key(self.name, defaults, completed))


@dataclass(frozen=True, slots=True)
class MetricRequest:
    """A metric with complete parameters, and the name under which its scores are stored.

    Args:
        metric: Requested metric.
        parameters: Complete parameters by name.
        key: Name in score tables and reports: set by the user, or the name of the metric followed by its non-default
            parameters in parentheses.
        functions: Parameter -> the function that its value names.
    """

    metric: Metric
    parameters: Parameters
    key: str
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict, compare=False)
    columns: tuple[str, ...] = field(init=False, compare=False, repr=False)
    """Sample columns that the metric and its own products need."""
    optional_columns: tuple[str, ...] = field(init=False, compare=False, repr=False)
    """Sample columns that the metric and its own products use if the data has them."""
    products: tuple[Product, ...] = field(init=False, compare=False, repr=False)
    """Builtin products that the metric and its own products read."""
    own_columns: OwnColumns = field(init=False, compare=False, repr=False)
    """Columns beyond those of a sample that the metric needs."""
    bounds: tuple[float, float] | None = field(init=False, compare=False, repr=False)
    """Least and greatest value; None if the user or the row defines the scale."""
    _declared: Declarations = field(init=False, compare=False, repr=False)
    _undefined: frozenset[str] = field(init=False, compare=False, repr=False)
    """Reasons for which a cell may be undefined."""

    def __post_init__(self) -> None:
        metric, parameters = self.metric, self.parameters
        for name in ("columns", "optional_columns", "products", "bounds"):
            object.__setattr__(self, name, getattr(metric, name)(parameters))
        for name in ("columns", "optional_columns", "products"):
            of_products = (part for product in metric.own_products for part in getattr(product, name))
            object.__setattr__(self, name, tuple(dict.fromkeys((*getattr(self, name), *of_products))))
        given = metric.own_columns
        object.__setattr__(self, "own_columns", given(parameters) if callable(given) else given)
        readable = frozenset({*self.columns, *self.optional_columns})
        products = closure(self.products).union(metric.optional_products)
        own = {product.name: product for product in metric.own_products}
        declared = Declarations(self._name, self.key, readable, products, self.own_columns, own_products=own)
        object.__setattr__(self, "_declared", declared)
        missing = {missing_column(column) for column in (*self.columns, *self.optional_columns)}
        object.__setattr__(self, "_undefined", frozenset(missing.union(metric.undefined)))

    @property
    def needs_language_model(self) -> bool:
        """True if the metric needs a language model as judge, with these parameters."""
        return self.metric.language_model and any_judged(self.products)

    @property
    def function_names(self) -> dict[str, str]:
        """The functions that parameters name, by parameter."""
        named = [name for name, parameter in self.metric.parameters.items() if parameter.is_function]
        return {name: self.parameters[name] for name in named if self.parameters[name] is not None}

    @property
    def values(self) -> Parameters:
        """The parameters, with functions in place of their names."""
        return {**self.parameters, **self.functions}

    @property
    def _name(self) -> str:
        origin = self.metric.origin
        return f"{self.metric.name} ({origin})" if origin else self.metric.name

    def lacking(self, available: Collection[str]) -> tuple[str, ...]:
        """Return the columns that the metric needs and data with these columns lack."""
        stand_ins = self.metric.stand_ins
        return tuple(
            column
            for column in self.columns
            if column not in available and not any(each in available for each in stand_ins.get(column, ()))
        )

    def rating_requests(self, sample: Sample) -> Sequence[RatingRequest] | Score:
        """Return the rating questions about a sample, or its score if no question is needed.

        Raises:
            MetricError: If the metric raises, reads an undeclared column, or returns an invalid score.
        """
        ask = self.metric.ratings
        if ask is None:
            return ()

        def ask_about(evidence: Evidence) -> Sequence[RatingRequest] | Score:
            return ask(DeclaredSample(evidence.sample, self._declared), self.values)

        asked: Sequence[RatingRequest] | Score = self._checked(ask_about, Evidence(sample))
        return asked

    def verdict_requests(self, evidence: Evidence) -> Sequence[VerdictRequest]:
        """Return the verdicts that the metric wants judged for a row; none if it lacks a column or its claims.

        A metric that follows up its requests is asked again as long as the evidence has the verdicts on them.

        Raises:
            MetricError: If the metric raises, reads what it does not declare or anything but claims and sentences, or
                requests a verdict on a claim or by a premise that the row does not have.
        """
        ask = self.metric.verdicts
        if ask is None:
            return ()
        declared = self._declared.before_verdicts(follows_up=self.metric.follows_up)

        def ask_about(evidence: Evidence) -> Sequence[VerdictRequest]:
            requested = ask(DeclaredEvidence(evidence, declared), self.values)
            if not isinstance(requested, Sequence):
                raise self._error(f"requests {requested!r}, wanted a list of VerdictRequest", evidence.sample)
            return requested

        known: dict[VerdictRequest, None] = {}
        for _ in range(_MOST_ROUNDS):
            requested = self._checked(ask_about, replace(evidence, requested=known))
            if isinstance(requested, Score):
                return ()
            for request in requested:
                self._check_verdict_request(request, evidence)
            new = dict.fromkeys(request for request in requested if request not in known)
            known = known | new
            has_verdicts = all((request.kind, *request.key) in evidence.verdicts for request in new)
            if not (new and has_verdicts and self.metric.follows_up):
                return tuple(known)
        raise self._error(f"requests further verdicts after {_MOST_ROUNDS} rounds", evidence.sample)

    def _check_verdict_request(self, request: object, evidence: Evidence) -> None:
        if not isinstance(request, VerdictRequest):
            raise self._error(f"requests {request!r}, wanted a VerdictRequest", evidence.sample)
        if request.has_levels and Product.REQUESTED_LEVELS not in self.products:
            problem = "requests a verdict in three levels; add Product.REQUESTED_LEVELS to its products"
            raise self._error(problem, evidence.sample)
        if request.claim is not None and not any(request.claim in claims for claims in evidence.claims.values()):
            problem = f"requests a verdict on {request.claim!r}, which is not a claim of the row"
            raise self._error(problem, evidence.sample)
        if request.premise is not None and not has_premise(evidence.sample, request.premise):
            wanted = ", ".join(premises_of(evidence.sample)) or "none"
            problem = f"requests a verdict by {request.premise!r}; premises of the row are: {wanted}"
            raise self._error(problem, evidence.sample)

    def score(self, evidence: Evidence) -> Score:
        """Return the score of a row: undefined if a column is missing, the recorded gap if a product is missing.

        Raises:
            MetricError: If the metric raises, reads what it does not declare, or returns an invalid score: one outside
                its range, one with an undeclared reason, or none.
        """

        def compute(evidence: Evidence) -> Any:
            if self.metric.verdicts is not None:
                evidence = replace(evidence, requested=dict.fromkeys(self.verdict_requests(evidence)))
            score: object = self.metric.compute(self, DeclaredEvidence(evidence, self._declared))
            if not isinstance(score, Score):
                raise self._error(f"returned {score!r}, wanted a Score", evidence.sample)
            return score

        score: Score = self._checked(compute, evidence)
        return score

    def _checked(self, call: Callable[[Evidence], Any], evidence: Evidence) -> Any:
        """Return what the metric returns for a row; a score only if it is valid."""
        sample = evidence.sample
        try:
            for column in self.columns:
                stand_ins = self.metric.stand_ins.get(column, ())
                if not any(getattr(evidence.sample, stand_in) for stand_in in stand_ins):
                    evidence.column(column)
            for column, kind in self.own_columns.items():
                evidence.own_column(column, kind)
            result = call(evidence)
        except MissingProductError as missing:
            return self._known_outcome(missing.outcome, evidence)
        except AssayError:
            raise
        except Exception as error:
            raise self._error(f"raised {type(error).__name__}: {error}", sample) from error
        if isinstance(result, Score):
            problem = score_problem(result, self.bounds, self._undefined, self.metric.failed)
            if problem is not None:
                raise self._error(problem, sample)
        return result

    def _known_outcome(self, outcome: Score, evidence: Evidence) -> Score:
        """Return the outcome of a gap, which a metric that raises the error itself cannot invent."""
        known = {gap.reason for gap in evidence.gaps.values()}
        known |= {rating.reason for rating in evidence.ratings.get(self.key, ())}
        own = self.own_columns
        known |= {missing_column(column) for column in (*self.columns, *self.optional_columns, *own)}
        known |= {wrong_type(column, kind) for column, kind in own.items()}
        for product in self.metric.own_products:
            value = evidence.computed[product.name][2] if product.name in evidence.computed else None
            known |= {value.reason} if isinstance(value, Score) else set()
        if outcome.reason not in known:
            problem = f"raised MissingProductError for {outcome.reason!r}, which is not a recorded gap"
            raise self._error(problem, evidence.sample)
        return outcome

    def _error(self, problem: str, sample: Sample) -> MetricError:
        return MetricError(f"the metric {self._name} {problem} (row {sample.row_id!r})")


def constant(*values: Any) -> Callable[[Parameters], tuple[Any, ...]]:
    """Return a function that ignores its parameters and returns these values.

    >>> constant("response", "reference")({})
    ('response', 'reference')
    """
    return lambda _: values
