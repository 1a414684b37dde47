"""Where the stages of a run are computed."""

from typing import Any, cast

from prefect.futures import PrefectFuture
from prefect.task_runners import TaskRunner, ThreadPoolTaskRunner

from flows.config import RunConfig


def runner_of(config: RunConfig) -> TaskRunner[PrefectFuture[Any]]:
    """Runs as many stages at the same time as the configuration allows."""
    return cast("TaskRunner[PrefectFuture[Any]]", ThreadPoolTaskRunner[Any](max_workers=config.workers))
