"""A gate as a TOML file: its rules in the form in which people write them."""

import re
import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from flows.config.option_errors import describe_option_error
from metric_core.errors import ConfigError
from metric_core.gates.rules import (
    AbsoluteRule,
    Count,
    CoverageRule,
    Gate,
    JudgeRule,
    RegressionRule,
    Statistic,
    Threshold,
)
from tasks.options.model_options import Settings

_SHORT = re.compile(
    r"\s*(?P<metric>.+?)\s*(?:\.\s*(?P<statistic>mean|median|least|greatest))?\s*(?P<sign>>=|<=)\s*(?P<bar>\S+)\s*"
)


def _long_form(value: Any) -> Any:
    """`faithfulness.mean >= 0.8` -> the table that says the same."""
    if not isinstance(value, str):
        return value
    match = _SHORT.fullmatch(value)
    if match is None:
        raise ValueError(f'a rule in short is written "metric.mean >= 0.8" or "metric.mean <= 0.2", got {value!r}')
    side = "at_least" if match["sign"] == ">=" else "at_most"
    return {"metric": match["metric"], "statistic": match["statistic"] or "mean", side: match["bar"]}


def _as_list(value: Any) -> Any:
    return [value] if isinstance(value, dict) else value


def _selected(value: Any) -> Any:
    return None if value == "all" else value


Metrics = Annotated[tuple[str, ...] | None, BeforeValidator(_selected), Field(None, description="metrics, or all")]
Share = Annotated[float | None, Field(None, ge=0, le=1)]


class AbsoluteSettings(Settings):
    """A metric keeps to a bar.

    Args:
        metric: its key or name.
        statistic: what of its values is looked at.
        at_least: how low it may be.
        at_most: how high it may be.
    """

    metric: str
    statistic: Statistic = Statistic.MEAN
    at_least: float | None = Field(None, allow_inf_nan=False)
    at_most: float | None = Field(None, allow_inf_nan=False)

    @model_validator(mode="after")
    def _has_one_bar(self) -> Self:
        if (self.at_least is None) == (self.at_most is None):
            raise ValueError("a rule has one of at_least and at_most")
        return self

    def rule(self) -> AbsoluteRule:
        """The rule it stands for."""
        if self.at_least is not None:
            return AbsoluteRule(self.metric, self.statistic, Threshold(self.at_least))
        return AbsoluteRule(self.metric, self.statistic, Threshold(self.at_most or 0.0, is_floor=False))


class RegressionSettings(Settings):
    """Metrics are worse than in the baseline by at most so much.

    Args:
        max_drop: by how much the mean may be worse, in the metric's own units, whichever way is worse.
        metrics: which; all that no other rule names, by default.
    """

    max_drop: float = Field(ge=0, allow_inf_nan=False)
    metrics: Metrics


class CoverageSettings(Settings):
    """So many rows are scored.

    Args:
        scored_at_least: share of the rows that have a value.
        failed_at_most: share of the rows of which the judge gave nothing usable.
        paired_at_least: share of the rows scored in the baseline that are scored in both runs.
        metrics: which; all by default.
    """

    scored_at_least: Share
    failed_at_most: Share
    paired_at_least: Share
    metrics: Metrics

    def rules(self) -> list[CoverageRule]:
        """The rules it stands for."""
        bars = {
            Count.SCORED: (self.scored_at_least, True),
            Count.FAILED: (self.failed_at_most, False),
            Count.PAIRED: (self.paired_at_least, True),
        }
        return [
            CoverageRule(self.metrics, c, Threshold(bar, floor)) for c, (bar, floor) in bars.items() if bar is not None
        ]


class JudgeRuleSettings(Settings):
    """The judge is known to agree with people; numbers of one that is not tell nothing.

    Args:
        min_agreement: Cohen's kappa at the best threshold, as `assay calibrate` reports it, or Spearman's correlation
            where people gave grades. The lower end of its 95 % interval counts, not the estimate.
        min_rows: over so many labelled rows.
        metrics: in which metrics; in all with absolute or regression rules, by default. Metrics without a judge need
            no agreement.
    """

    min_agreement: float = Field(gt=0, le=1)
    min_rows: int = Field(100, ge=4)
    metrics: Metrics

    def rule(self) -> JudgeRule:
        """The rule it stands for."""
        return JudgeRule(self.metrics, Threshold(self.min_agreement), self.min_rows)


class GateSettings(Settings):
    """The rules of a gate.

    Args:
        absolute: bars for the run's own scores.
        regression: how much worse than the baseline metrics may be.
        coverage: how many rows must be scored.
        judge: how far the judge must agree with people for the other rules to tell anything.
        min_rows: with fewer rows nothing is told about a mean.
        level: how sure the ends of an interval are, and how sure the gate is not to fail by chance.
        inconclusive: what becomes of a gate that can not tell: an outcome of its own, passed, or failed. It does not
            pass by numbers of a judge that is not trusted.
    """

    absolute: tuple[Annotated[AbsoluteSettings, BeforeValidator(_long_form)], ...] = ()
    regression: Annotated[tuple[RegressionSettings, ...], BeforeValidator(_as_list)] = ()
    coverage: Annotated[tuple[CoverageSettings, ...], BeforeValidator(_as_list)] = ()
    judge: JudgeRuleSettings | None = None
    min_rows: int = Field(30, ge=2)
    level: float = Field(0.95, gt=0.5, lt=1)
    inconclusive: Literal["inconclusive", "passed", "failed"] = "inconclusive"

    def gate(self) -> Gate:
        """The gate they stand for."""
        return Gate(
            absolute=tuple(rule.rule() for rule in self.absolute),
            regression=tuple(RegressionRule(rule.metrics, rule.max_drop) for rule in self.regression),
            coverage=tuple(rule for coverage in self.coverage for rule in coverage.rules()),
            judge=None if self.judge is None else self.judge.rule(),
            min_rows=self.min_rows,
            level=self.level,
        )


def load_gate(path: Path) -> GateSettings:
    """Reads a gate file.

    Raises:
        ConfigError: a file that can not be read, that has no rule, or an option that can not be used.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        settings = GateSettings.model_validate(content)
    except FileNotFoundError as error:
        raise ConfigError(f"there is no gate file {path}. docs/compare.md says how to write one.") from error
    except ValidationError as error:
        problems = [
            (".".join(map(str, found["loc"])), describe_option_error(found, GateSettings)) for found in error.errors()
        ]
        lines = [f"  {place}: {message}" for place, message in problems]
        raise ConfigError(f"the gate file {path} can not be used:\n" + "\n".join(lines)) from error
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"the gate file {path} can not be read: {error}") from error
    gate = settings.gate()
    if not (gate.absolute or gate.regression or gate.coverage):
        raise ConfigError(f"the gate file {path} has no rule: it needs absolute, regression or coverage")
    return settings
