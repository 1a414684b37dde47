"""Declare the options that say which metrics are computed, and how verdicts count."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NotRequired, TypeAlias, TypedDict

from pydantic import BeforeValidator, Field

from metric_core.declarations.metric import MetricRequest
from metric_core.declarations.metric_text import parse_metrics
from metric_core.errors import AssayError, ConfigError
from metric_core.metrics.registry import resolve
from tasks.options.conversation_options import FollowUpOptions
from tasks.options.option import Flag, Option, OptionGroup
from tasks.options.text_forms import list_from_text
from tasks.plugins.metric_lookup import find_metric, parse_metric


def _split_metrics(text: str) -> list[str]:
    """Return the metrics of `a,b(c=1,d=2)`."""
    return list(map(str, parse_metrics(text)))


class MetricChoice(OptionGroup, affects_scores=True):
    """A metric with parameters."""

    metric: Annotated[str, Option("Name of the metric.", holds="text")]
    key: Annotated[
        str | None,
        Option("Name of its scores. Default: made of metric and parameters.", holds="text"),
    ] = None
    parameters: Annotated[dict[str, Any], Option("Parameters that differ from their defaults.", holds="text")] = Field(
        default_factory=dict
    )

    def request(self) -> MetricRequest:
        """Return the metric request that the options describe."""
        key = self.key or self.parameters.get("name")
        return find_metric(self.metric).request(self.parameters, key)


def is_packaged_metric(choice: Any) -> bool:
    """Return whether a choice, as text or as a table, names only metrics of rag-assay, which load no other code."""
    try:
        text = choice["metric"] if isinstance(choice, Mapping) else choice
        return text is None or all(resolve(each.name) for each in parse_metrics(text))
    except (AssayError, KeyError, AttributeError, TypeError):
        return False


class MetricTable(TypedDict):
    """A metric with parameters, as a table of a configuration file has it: the fields of `MetricChoice`."""

    metric: str
    key: NotRequired[str]
    parameters: NotRequired[Mapping[str, Any]]


MetricChoices: TypeAlias = Annotated[
    tuple[str | MetricChoice, ...] | None, BeforeValidator(list_from_text(_split_metrics))
]
"""Metrics by name, with or without parameters; None if none are named."""


VerdictKind: TypeAlias = Literal["binary", "probability"]
"""The value of a verdict in a metric: 0 or 1, or the judge's probability of yes."""


class VerdictOptions(OptionGroup, affects_scores=True):
    """The option that says how verdicts count."""

    verdict: Annotated[
        VerdictKind | None,
        Option(
            "Count a verdict as 0 or 1 (binary), or as the judge's probability of yes (probability). Default: "
            "probability for the built-in judge, binary for others.",
            by_run=True,
            examples=["probability"],
        ),
    ] = None


class MetricOptions(VerdictOptions, FollowUpOptions, affects_scores=True):
    """Options that say what is computed."""

    metrics: Annotated[
        MetricChoices,
        Option(
            "Metrics to compute. Default: all that the data and the judge allow.",
            holds="text",
            by_run=is_packaged_metric,
            cli=Flag(
                long="--metrics",
                short="-m",
                metavar="METRIC,...",
                repeats=True,
                help="Metrics, comma-separated, parameters in parentheses: "
                "faithfulness,hit_rate(k=5). Default: all that the data and the judge allow.",
            ),
        ),
    ] = None
    calibration: Annotated[
        str,
        Option(
            'With verdict = "probability": the calibration that maps the probabilities: none, the latest of this '
            "judge (latest), or a calibration.json.",
            holds="path",
            words=("none", "latest"),
            examples=["latest"],
        ),
    ] = "none"
    explain: Annotated[
        Literal["none", "unsupported", "ratings", "all"],
        Option(
            "What the judge explains afterwards: claims without support (unsupported), ratings (ratings), or all "
            "verdicts on claims and all ratings (all).",
            affects_scores=False,
            by_run=True,
            cli=Flag(long="--explain", metavar="none|unsupported|ratings|all"),
        ),
    ] = "none"

    def requests(self) -> list[MetricRequest] | None:
        """Return the named metrics with complete parameters; None if none are named.

        Raises:
            ConfigError: A metric or parameter is unknown, or two metrics have the same key.
        """
        if self.metrics is None:
            return None
        requests = [parse_metric(m) if isinstance(m, str) else m.request() for m in self.metrics]
        keys = [request.key for request in requests]
        twice = sorted({key for key in keys if keys.count(key) > 1})
        if twice:
            raise ConfigError(f"the metric {twice[0]!r} is asked for twice; give one of them another key")
        if not requests:
            raise ConfigError("metrics is empty; name at least one, or leave it out for all that the data allows")
        return requests
