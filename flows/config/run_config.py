"""Compose the configuration of a run, which flows receive as their parameter, from its option groups."""

from flows.config.anchor_options import AnchorOptions
from flows.config.deploy_options import DeployOptions
from flows.config.history_options import HistoryOptions
from flows.config.loading_options import LoadingOptions
from flows.config.output_options import OutputOptions, TableStoreOptions
from flows.config.runner_options import ExecutionOptions
from tasks.options.cost_options import CostOptions
from tasks.options.evaluation_options import EvaluationOptions
from tasks.options.judge_options import JudgeSettings
from tasks.runtime.home import assay_home


# pydantic takes the fields of the last base first: read the groups from the bottom up.
class RunConfig(
    LoadingOptions,
    DeployOptions,
    ExecutionOptions,
    AnchorOptions,
    HistoryOptions,
    OutputOptions,
    CostOptions,
    TableStoreOptions,
    EvaluationOptions,
):
    """The configuration of a run: what is evaluated, with which models, and where the results go."""


def with_launched_judge(config: RunConfig, url: str) -> RunConfig:
    """Return the configuration with the launched judge at a URL."""
    options = config.judge.server.model_dump() if config.judge.server else {}
    judge = {"backend": "server", "server": {**options, "urls": [url]}}
    return config.model_copy(update={"judge": JudgeSettings.model_validate(judge)})


def tables_root(config: RunConfig) -> str:
    """Return the root of the store of stage tables."""
    return config.tables or str(assay_home() / "tables")
