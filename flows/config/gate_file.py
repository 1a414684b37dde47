"""Read a gate from a file, and declare the options of its rules."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from flows.config.config_files import read_options
from flows.config.option_errors import describe_option_error
from metric_core.errors import ConfigError
from metric_core.gates.rules import (
    AbsoluteRule,
    Count,
    CoverageRule,
    Gate,
    JudgeRule,
    Outcome,
    RegressionRule,
    SliceSelection,
    Statistic,
    Threshold,
)
from tasks.options.option import Option, OptionGroup
from tasks.runtime.wording import prefix_place

KEPT_AT_LEAST = 0.9
"""Lowest accepted share of the baseline's rows in a monitored run, unless its gate says `paired_at_least`."""

_SHORT = re.compile(
    r"\s*(?P<metric>.+?)\s*(?:\.\s*(?P<statistic>mean|corrected|median|p50|p95|least|greatest))?\s*(?P<sign>>=|<=)\s*(?P<threshold>\S+)"
    r"(?:\s+for\s+(?:each\s+(?P<each>.+?)|(?P<column>[^=]+?)\s*=\s*(?P<value>.+?)))?\s*"
)


def _long_form(value: Any) -> Any:
    """Return the table that a rule such as `faithfulness.mean >= 0.8 for each topic` abbreviates."""
    if not isinstance(value, str):
        return value
    match = _SHORT.fullmatch(value)
    if match is None:
        raise ValueError(
            'a rule as text must be like "metric.mean >= 0.8" or "metric.mean <= 0.2", and may end with "for each '
            f'column" or "for column = value", got {value!r}'
        )
    side = "at_least" if match["sign"] == ">=" else "at_most"
    rule = {
        "metric": match["metric"],
        "statistic": {None: "mean", "p50": "median"}.get(match["statistic"], match["statistic"]),
        side: match["threshold"],
    }
    if match["column"]:
        return rule | {"slices": {match["column"]: [match["value"]]}}
    return rule | {"slices": [match["each"]]} if match["each"] else rule


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, dict) else value


def _selected(value: Any) -> Any:
    return None if value == "all" else value


def _as_slices(value: Any) -> Any:
    """Return the table of slices that a rule names: column -> values, or None for every slice of a column."""
    if isinstance(value, str):
        return {value: None}
    if isinstance(value, list | tuple):
        return dict.fromkeys(value)
    if isinstance(value, dict):
        return {column: _as_texts(values) for column, values in value.items()}
    return value


def _as_texts(value: Any) -> Any:
    """Return a list of texts: the values of slices are texts, whatever they are in the data."""
    if value is None:
        return None
    return [str(item) for item in (value if isinstance(value, list | tuple) else [value])]


class SliceRuleOptions(OptionGroup, affects_scores=False):
    """The option that limits a rule to slices of the rows."""

    slices: Annotated[
        Annotated[dict[str, tuple[str, ...] | None], BeforeValidator(_as_slices)],
        Option(
            "Slices that the rule applies to, separately: a column, for every slice of it; a list of columns; or a "
            "table of columns with the values of the slices. Default: all rows together.",
            holds="text",
            examples=["customer", {"topic": ["travel"]}],
        ),
    ] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _name_columns(self) -> Self:
        for column, values in self.slices.items():
            if not column.strip() or values == ():
                raise ValueError(f"slices need a column, and at least one value if any are named, got {self.slices!r}")
        return self

    def selections(self) -> tuple[SliceSelection | None, ...]:
        """Return the slices of the rule, a selection per column; None alone for all rows together."""
        if not self.slices:
            return (None,)
        return tuple(SliceSelection(column, values) for column, values in self.slices.items())


Metrics = Annotated[
    tuple[str, ...] | None,
    BeforeValidator(_selected),
    Option("Metrics, or all.", holds="text"),
]


class AbsoluteSettings(SliceRuleOptions, affects_scores=False):
    """A threshold for a metric of the run."""

    metric: Annotated[str, Option("Key or name of the metric.", holds="text")]
    statistic: Annotated[Statistic, Option("Statistic of its values.")] = Statistic.MEAN
    at_least: Annotated[float | None, Option("Lowest accepted value.", allow_inf_nan=False)] = None
    at_most: Annotated[float | None, Option("Highest accepted value.", allow_inf_nan=False)] = None

    @model_validator(mode="after")
    def _has_one_threshold(self) -> Self:
        if (self.at_least is None) == (self.at_most is None):
            raise ValueError("a rule must have either at_least or at_most")
        if self.slices and self.statistic is Statistic.CORRECTED:
            raise ValueError("a bias-corrected mean is about all rows of a run: leave out slices, or take the mean")
        return self

    def rules(self) -> list[AbsoluteRule]:
        """Return these options as rules, one per column of slices."""
        threshold = (
            Threshold(self.at_most or 0.0, is_floor=False) if self.at_least is None else Threshold(self.at_least)
        )
        return [AbsoluteRule(self.metric, self.statistic, threshold, slices) for slices in self.selections()]


class RegressionSettings(SliceRuleOptions, affects_scores=False):
    """A limit on how much worse than the baseline metrics may be; by default for all that no other rule names."""

    max_drop: Annotated[
        float,
        Option(
            "Maximum amount by which the mean may get worse, in the units of the metric, whichever direction is worse.",
            ge=0,
            allow_inf_nan=False,
        ),
    ]
    metrics: Metrics = None

    def rules(self) -> list[RegressionRule]:
        """Return these options as rules, one per column of slices."""
        return [RegressionRule(self.metrics, self.max_drop, slices) for slices in self.selections()]


class CoverageSettings(SliceRuleOptions, affects_scores=False):
    """Limits on the shares of rows that are scored."""

    scored_at_least: Annotated[float | None, Option("Lowest accepted share of rows with a value.", ge=0, le=1)] = None
    failed_at_most: Annotated[
        float | None, Option("Highest accepted share of rows for which the judge returned nothing usable.", ge=0, le=1)
    ] = None
    paired_at_least: Annotated[
        float | None,
        Option(
            "Lowest accepted share of the rows scored in the baseline that are scored in both runs. Monitored runs "
            "also require this share of the baseline's rows, and of the values of each column; by default 0.9.",
            ge=0,
            le=1,
        ),
    ] = None
    metrics: Metrics = None

    def rules(self) -> list[CoverageRule]:
        """Return these options as rules."""
        thresholds = {
            Count.SCORED: (self.scored_at_least, True),
            Count.FAILED: (self.failed_at_most, False),
            Count.PAIRED: (self.paired_at_least, True),
        }
        return [
            CoverageRule(self.metrics, count, Threshold(value, is_floor), slices)
            for slices in self.selections()
            for count, (value, is_floor) in thresholds.items()
            if value is not None
        ]


class JudgeRuleSettings(OptionGroup, affects_scores=False):
    """A minimum agreement of the judge with people, a maximum flip rate, or both.

    It applies by default to all metrics with absolute or regression rules. Metrics without a judge need neither.
    """

    min_agreement: Annotated[
        float | None,
        Option(
            "Lowest accepted lower end of the 95 % interval of Cohen's kappa at the best threshold, as `assay "
            "calibrate` reports it, or of Spearman's correlation where people gave grades.",
            gt=0,
            le=1,
        ),
    ] = None
    max_flip: Annotated[
        float | None,
        Option(
            "Highest accepted upper end of the 95 % interval of the flip rate in the certificate of the judge, which "
            "`assay judge check` makes. A certificate with a fault is not accepted.",
            gt=0,
            lt=1,
        ),
    ] = None
    min_rows: Annotated[int, Option("Lowest accepted number of labeled rows.", ge=4)] = 100
    metrics: Metrics = None

    @model_validator(mode="after")
    def _require_something(self) -> Self:
        if self.min_agreement is None and self.max_flip is None:
            raise ValueError("requires nothing of the judge: give min_agreement, max_flip, or both")
        return self

    def rule(self) -> JudgeRule:
        """Return these options as a rule."""
        agreement = None if self.min_agreement is None else Threshold(self.min_agreement)
        flips = None if self.max_flip is None else Threshold(self.max_flip, is_floor=False)
        return JudgeRule(self.metrics, agreement, self.min_rows, flips)


class GateSettings(OptionGroup, affects_scores=False):
    """The rules of a gate."""

    absolute: Annotated[
        tuple[Annotated[AbsoluteSettings, BeforeValidator(_long_form)], ...],
        Option("Thresholds for the scores of the run."),
    ] = ()
    regression: Annotated[
        Annotated[tuple[RegressionSettings, ...], BeforeValidator(_as_list)],
        Option("How much worse than the baseline metrics may be."),
    ] = ()
    coverage: Annotated[
        Annotated[tuple[CoverageSettings, ...], BeforeValidator(_as_list)], Option("How many rows must be scored.")
    ] = ()
    judge: Annotated[
        JudgeRuleSettings | None,
        Option("What is required of the judge for the other rules to count."),
    ] = None
    min_rows: Annotated[int, Option("Minimum number of rows for a decision on a rule about a mean.", ge=2)] = 30
    level: Annotated[
        float,
        Option(
            "Confidence level of the intervals, and probability that the gate does not fail by chance.", gt=0.5, lt=1
        ),
    ] = 0.95
    looks: Annotated[
        int,
        Option(
            "Number of runs over which the gate does not fail by chance with that probability: 366 for a gate that is "
            "applied every night for a year.",
            ge=1,
        ),
    ] = 1
    small_slices: Annotated[
        Literal["inconclusive", "skip"],
        Option(
            "Result of rules about slices with fewer rows than min_rows, or of fewer than five groups: they are "
            "inconclusive, or leave such slices out and list them."
        ),
    ] = "inconclusive"
    inconclusive: Annotated[
        Literal["inconclusive", "passed", "failed"],
        Option(
            "Outcome of a gate that cannot decide. It never passes because of scores of a judge that is not trusted."
        ),
    ] = "inconclusive"

    @property
    def kept_at_least(self) -> float:
        """Lowest accepted share of the baseline's rows: the highest `paired_at_least` of rules about all rows."""
        shares = [rule.paired_at_least for rule in self.coverage if not rule.slices]
        return max((share for share in shares if share is not None), default=KEPT_AT_LEAST)

    def gate(self) -> Gate:
        """Return these options as a gate."""
        return Gate(
            absolute=tuple(rule for settings in self.absolute for rule in settings.rules()),
            regression=tuple(rule for settings in self.regression for rule in settings.rules()),
            coverage=tuple(rule for coverage in self.coverage for rule in coverage.rules()),
            judge=None if self.judge is None else self.judge.rule(),
            min_rows=self.min_rows,
            level=self.level,
            looks=self.looks,
            undecided=Outcome(self.inconclusive),
            skips_small_slices=self.small_slices == "skip",
        )


def load_gate(path: Path) -> GateSettings:
    """Read a gate file.

    Raises:
        ConfigError: The file cannot be read, has no rule, or has an option that cannot be used.
    """
    try:
        options = read_options(path, "the gate file", "TOML")
    except FileNotFoundError as error:
        raise ConfigError(f"there is no gate file {path}. `assay docs gates` says how to write one.") from error
    return parse_gate(options, f"the gate file {path}")


def parse_gate(options: Mapping[str, object], name: str) -> GateSettings:
    """Check the content of a gate file.

    Args:
        options: Content of the file.
        name: Name of the gate for messages, such as "the gate file gate.toml".

    Raises:
        ConfigError: The gate has no rule, or an option that cannot be used.
    """
    try:
        settings = GateSettings.model_validate(options)
    except ValidationError as error:
        lines = [
            f"  {prefix_place(problem['loc'], describe_option_error(problem, GateSettings))}"
            for problem in error.errors()
        ]
        raise ConfigError(f"{name} cannot be used:\n" + "\n".join(lines)) from error
    gate = settings.gate()
    if not (gate.absolute or gate.regression or gate.coverage):
        raise ConfigError(f"{name} has no rule: it needs absolute, regression or coverage")
    return settings


def _read_gate(value: Any) -> Any:
    """Return the rules of a gate file, because a deployment may run where the file does not exist."""
    return load_gate(Path(value)) if isinstance(value, str) else value


GateChoice: TypeAlias = Annotated[GateSettings, BeforeValidator(_read_gate)] | None
"""A gate: the content of a gate file, or its path, which is read; None for no gate."""
