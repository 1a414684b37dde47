"""Plan the evaluation of the anchor: the rows that every run judges besides its own.

Prefect is not imported here, because runs are checked before it is needed.
"""

from dataclasses import dataclass
from typing import Any

from flows.config.anchor_options import AnchorSettings
from flows.config.run_config import RunConfig
from flows.execution.plan import Plan, products_of
from flows.execution.source_reading import source_options
from metric_core.calibration.labels import LabelRules
from metric_core.errors import ConfigError, SourceError
from metric_core.metric import MetricRequest
from tasks.calibration.label_pairing import LabelledData, read_labelled
from tasks.sources import available_columns


@dataclass(frozen=True, slots=True)
class AnchorPlan:
    """The evaluation of an anchor.

    Args:
        settings: Options of the anchor.
        config: Configuration of its evaluation: that of the run, with the anchor as source.
        plan: Metrics of the run that the columns of the anchor allow.
    """

    settings: AnchorSettings
    config: RunConfig
    plan: Plan

    @property
    def labelled(self) -> dict[str, MetricRequest]:
        """Mapping from column with labels to the metric that they are about.

        Raises:
            ConfigError: A metric with labels is not one of the anchor's.
        """
        found = {}
        for name, column in self.settings.labels.items():
            requests = [each for each in self.plan.requests if name in (each.key, each.metric.name)]
            if len(requests) != 1:
                known = ", ".join(each.key for each in self.plan.requests)
                lacking = self.plan.left_out.get(name)
                why = f": the anchor has no {', '.join(lacking)}" if lacking else f"; it computes {known}"
                raise ConfigError(
                    f"anchor.labels names the metric {name!r}, which the run does not compute for the anchor{why}. "
                    "Correct the name, or leave its labels out"
                )
            found[column] = requests[0]
        return found

    def rules(self, column: str) -> LabelRules:
        """Return the rules for reading a column of labels."""
        return LabelRules(column, self.settings.positive, self.settings.span)

    def read_labels(self, column: str) -> LabelledData:
        """Read a column of labels.

        Raises:
            SourceError: The anchor lacks the column, or its labels cannot be used.
            ConfigError: The options do not fit the labels.
        """
        return read_labelled(self.settings.source, source_options(self.config), self.rules(column))


def plan_anchor(config: RunConfig, plan: Plan) -> AnchorPlan | None:
    """Return the plan of the anchor; None if the configuration has no anchor.

    The anchor is judged as the rows of the run are: by the same models, with the same prompts and metrics. Unlike them
    it is never asked about again for `refresh`, and its verdicts are not explained.

    Args:
        config: Configuration of the run.
        plan: Plan of the run.

    Raises:
        SourceError: The anchor cannot be read, or no metric of the run can work on it.
    """
    if config.anchor is None:
        return None
    changes: dict[str, Any] = {
        "source": config.anchor.source,
        "column_map": config.anchor.column_map,
        "id_column": config.anchor.id_column,
        "anchor": None,
        "baseline": None,
        "by": None,
        "explain": "none",
        "limit": None,
        "metrics_file": None,
        "otlp": None,
        "refresh": (),
        "retriever": None,
        "slices": (),
    }
    own = config.model_copy(update=changes)
    columns = available_columns(config.anchor.source, source_options(own))
    requests = tuple(each for each in plan.requests if not each.lacking(columns))
    if not requests:
        raise SourceError(
            f"no metric of the run can work on the anchor {config.anchor.source}, which has the sample columns "
            f"{', '.join(columns) or 'of none'}; they need {_needs(plan)}. anchor.column_map gives its columns the "
            "names of sample columns."
        )
    left_out = {each.key: each.lacking(columns) for each in plan.requests if each not in requests}
    products = products_of(config, requests, columns)
    return AnchorPlan(config.anchor, own, Plan(requests, products, left_out))


def check_anchor(config: RunConfig, plan: Plan) -> str:
    """Check that an anchor can be evaluated and its labels be read.

    Args:
        config: Configuration of the run.
        plan: Plan of the run.

    Raises:
        AssayError: The anchor cannot be used.
    """
    anchor = plan_anchor(config, plan)
    if anchor is None:
        return "no anchor"
    for column in anchor.labelled:
        anchor.read_labels(column)
    return anchor.settings.source


def _needs(plan: Plan) -> str:
    return "; ".join(f"{metric} {', '.join(columns)}" for metric, columns in plan.required.items())
