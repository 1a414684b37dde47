"""Compose the options that say where results go, and what is done with them."""

from flows.config.deploy_options import DeployOptions
from flows.config.history_options import HistoryOptions
from flows.config.output_options import OutputOptions
from tasks.options.source_options import SourceAddress


class ResultOptions(HistoryOptions, OutputOptions):
    """Options that say where the results of a run go, and under which name."""


class MonitoringOptions(DeployOptions, ResultOptions, SourceAddress):
    """Options of what follows from a run: comparison, gate, alarms, alerts."""
