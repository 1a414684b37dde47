"""Compose the configuration of a run, which flows receive as their parameter, from its option groups."""

from collections.abc import Mapping
from typing import TypeVar

from flows.config.anchor_options import AnchorOptions
from flows.config.deploy_options import DeployOptions
from flows.config.history_options import HistoryOptions
from flows.config.loading_options import LoadingOptions
from flows.config.output_options import OutputOptions, TableStoreOptions
from flows.config.runner_options import ExecutionOptions
from metric_core.judge_questions import KindGroup
from tasks.options.cost_options import CostOptions, Prices
from tasks.options.evaluation_options import EvaluationOptions
from tasks.options.judge_options import SingleJudgeSettings
from tasks.options.judge_server_options import ServerJudgeOptions
from tasks.options.launch_options import LaunchSettings
from tasks.runtime.home import assay_home

J = TypeVar("J", bound=SingleJudgeSettings)


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

    @property
    def all_prices(self) -> tuple[Prices, ...]:
        """All prices of the configuration: those of all judges, and those that judges have of their own."""
        own = [judge.server.prices for judge in self.judges if judge.server is not None]
        return (self.prices, *(prices for prices in own if prices is not None))


def launches(config: RunConfig) -> dict[KindGroup | None, LaunchSettings]:
    """Return the judges that a run launches: that of each group of questions, and under None the judge of the others.

    >>> table = {"verdicts": {"launch": {"python": "python3", "model": "verifier"}}}
    >>> {group: launch.model for group, launch in launches(RunConfig(judge=table)).items()}
    {<KindGroup.VERDICTS: 'verdicts'>: 'verifier'}
    """
    named: list[tuple[KindGroup | None, SingleJudgeSettings]] = [(None, config.judge), *config.judge.by_group.items()]
    return {group: judge.launch for group, judge in named if judge.launch is not None}


def with_launched_judges(config: RunConfig, urls: Mapping[KindGroup | None, str]) -> RunConfig:
    """Return the configuration with the launched judges at their URLs.

    Args:
        config: Configuration of the run.
        urls: URL of each launched judge, as `launches` names them.
    """
    changed: dict[str, SingleJudgeSettings] = {
        group: _served_at(config.judge.by_group[group], url) for group, url in urls.items() if group is not None
    }
    judge = _served_at(config.judge, urls[None]) if None in urls else config.judge
    return config.model_copy(update={"judge": judge.model_copy(update=changed)})


def _served_at(judge: J, url: str) -> J:
    options = judge.server.model_dump() if judge.server else {}
    server = ServerJudgeOptions.model_validate({**options, "urls": [url]})
    return judge.model_copy(update={"backend": "server", "server": server, "launch": None})


def tables_root(config: RunConfig) -> str:
    """Return the root of the store of stage tables."""
    return config.tables or str(assay_home() / "tables")
