"""Plan the evaluation of the anchor: the rows that every run judges besides its own.

Prefect is not imported here, because runs are checked before it is needed.
"""

from dataclasses import dataclass
from typing import Any

from flows.planning.metric_plan import MetricPlan
from flows.planning.run_plan import RunPlan
from metric_core.calibration.labels import LabelRules
from metric_core.declarations.metric import MetricRequest
from metric_core.errors import ConfigError, SourceError
from tasks.calibration.label_pairing import LabelledData, read_labelled
from tasks.findings.anchor.anchor_options import AnchorOptions, AnchorSettings
from tasks.sources import available_columns


@dataclass(frozen=True, slots=True)
class AnchorPlan:
    """The evaluation of an anchor.

    Args:
        run: Plan of its evaluation: that of the run, with the anchor as source and the metrics that its columns allow.
    """

    settings: AnchorSettings
    run: RunPlan

    @property
    def labelled(self) -> dict[str, MetricRequest]:
        """Mapping from column with labels to the metric that they are about.

        Raises:
            ConfigError: A metric with labels is not one of the anchor's.
        """
        found = {}
        for name, column in self.settings.labels.items():
            requests = [each for each in self.run.metrics.requests if name in (each.key, each.metric.name)]
            if len(requests) != 1:
                known = ", ".join(each.key for each in self.run.metrics.requests)
                lacking = self.run.metrics.left_out.get(name)
                why = f": the anchor has no {', '.join(lacking)}" if lacking else f"; it computes {known}"
                raise ConfigError(
                    f"anchor.labels names the metric {name!r}, which the run does not compute for the anchor{why}. "
                    "Correct the name, or leave its labels out"
                )
            found[column] = requests[0]
        return found

    def rules(self, column: str) -> LabelRules:
        """Return the rules for reading a column of labels."""
        return LabelRules(column, self.settings.positive)

    def read_labels(self, column: str) -> LabelledData:
        """Read a column of labels.

        Raises:
            SourceError: The anchor lacks the column, or its labels cannot be used.
            ConfigError: The options do not fit the labels.
        """
        return read_labelled(self.settings.source, self.run.source.options(), self.rules(column))

    def check(self) -> str:
        """Check that all labels can be read, and return the source.

        Raises:
            AssayError: The labels cannot be used.
        """
        for column in self.labelled:
            self.read_labels(column)
        return self.settings.source


def anchor_of(plan: RunPlan) -> AnchorSettings:
    """Return the options of the anchor of a run.

    Raises:
        ValueError: The run has none.
    """
    settings = plan.options(AnchorOptions).anchor
    if settings is None:
        raise ValueError("the run has no anchor")
    return settings


def plan_anchor(plan: RunPlan) -> AnchorPlan:
    """Return the plan of the anchor of a run.

    The anchor is judged as the rows of the run are: by the same models, with the same prompts and metrics. Unlike them
    it is never asked about again for `refresh`, and its verdicts are not explained.

    Raises:
        SourceError: The anchor cannot be read, or no metric of the run can work on it.
    """
    settings = anchor_of(plan)
    changes: dict[str, Any] = {
        "source": settings.source,
        "column_map": settings.column_map,
        "id_column": settings.id_column,
        "anchor": None,
        "ask_again": 0,
        "baseline": None,
        "by": None,
        "explain": "none",
        "limit": None,
        "metrics_file": None,
        "refresh": (),
        "retriever": None,
        "sinks": {},
        "slices": (),
    }
    own = plan.with_options(**changes)
    columns = available_columns(settings.source, own.source.options())
    metrics = plan.metrics
    allowed = metrics.for_columns(columns)
    if not allowed.requests:
        raise SourceError(
            f"no metric of the run can work on the anchor {settings.source}, which has the sample columns "
            f"{', '.join(columns) or 'of none'}; they need {_needs(metrics)}. anchor.column_map gives its columns the "
            "names of sample columns."
        )
    return AnchorPlan(settings, own.with_metrics(allowed))


def _needs(metrics: MetricPlan) -> str:
    return "; ".join(f"{metric} {', '.join(columns)}" for metric, columns in metrics.required.items())
