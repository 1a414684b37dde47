"""Compose the configuration of a run, which flows receive as their parameter, from its option groups."""

from typing import Self

from flows.config.history_options import HistoryOptions
from flows.config.output_options import OutputOptions, TableStoreOptions
from flows.config.result_options import MonitoringOptions
from flows.config.runner_options import ExecutionOptions
from tasks.findings.anchor.anchor_options import AnchorOptions
from tasks.findings.objectives.objective_options import ObjectiveOptions
from tasks.findings.reference_age.reference_age_options import ReferenceAgeOptions
from tasks.findings.repeats.repeat_options import RepeatOptions
from tasks.findings.robustness.second_judge_options import SecondJudgeOptions
from tasks.options.cost_options import Prices
from tasks.options.evaluation_options import EvaluationOptions
from tasks.options.finding_options import FindingOptions
from tasks.options.narrow import narrow
from tasks.options.run_model_options import RunModelOptions


# pydantic takes the fields of the last base first: read the groups from the bottom up.
class RunConfig(
    MonitoringOptions,
    ExecutionOptions,
    AnchorOptions,
    HistoryOptions,
    RepeatOptions,
    SecondJudgeOptions,
    ReferenceAgeOptions,
    ObjectiveOptions,
    OutputOptions,
    RunModelOptions,
    TableStoreOptions,
    EvaluationOptions,
):
    """The configuration of a run: what is evaluated, with which models, and where the results go."""

    @property
    def of_findings(self) -> tuple[FindingOptions, ...]:
        """The options of each finding that has some."""
        return tuple(narrow(self, group) for group in FINDING_GROUPS)

    @property
    def all_prices(self) -> tuple[Prices, ...]:
        """All prices: those of all judges, and those of single judges, also of findings."""
        servers = [judge.server for each in self.of_findings for judge in each.other_judges.values()]
        own = [server.prices for server in servers if server is not None]
        return (*super().all_prices, *(prices for prices in own if prices is not None))

    def without_series(self) -> Self:
        """Return the configuration without options that only make sense in a series of runs."""
        changes = [each.alone() for each in self.of_findings]
        return self.model_copy(update={name: value for each in changes for name, value in each.items()})


FINDING_GROUPS = tuple(group for group in RunConfig.__bases__ if issubclass(group, FindingOptions))
"""Options of findings, which are in the rooms of these."""
