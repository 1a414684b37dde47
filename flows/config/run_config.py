"""Compose the configuration of a run, which flows receive as their parameter, from its option groups."""

from flows.config.output_options import TableStoreOptions
from flows.config.result_options import MonitoringOptions, ResultOptions
from flows.config.runner_options import ExecutionOptions
from tasks.findings.anchor.anchor_options import AnchorOptions
from tasks.options.evaluation_options import EvaluationOptions
from tasks.options.run_model_options import RunModelOptions


# pydantic takes the fields of the last base first: read the groups from the bottom up.
class RunConfig(
    MonitoringOptions,
    ExecutionOptions,
    AnchorOptions,
    ResultOptions,
    RunModelOptions,
    TableStoreOptions,
    EvaluationOptions,
):
    """The configuration of a run: what is evaluated, with which models, and where the results go."""
