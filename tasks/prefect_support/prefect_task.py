"""Wrap functions as Prefect tasks that retry and cache in the same way for all stages."""

from collections.abc import Callable
from typing import Any, cast

from prefect import Task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State, TaskRun

RETRIES = 2
RETRY_SECONDS = [1.0, 10.0]


def make_prefect_task(name: str, version: int, function: Callable[..., Any], run_name: str) -> Task[..., Any]:
    """Return a task that is retried after transient faults and whose result Prefect does not store.

    Args:
        run_name: Template for the names of its runs.
    """
    return Task(
        function,
        name=str(name),
        version=str(version),
        task_run_name=run_name,
        cache_policy=NO_CACHE,
        persist_result=False,
        retries=RETRIES,
        retry_delay_seconds=RETRY_SECONDS,
        retry_condition_fn=_is_transient,
    )


def run_here(task: Task[..., Any], *arguments: Any) -> Any:
    """Run a task in the process of the flow, wherever the stages run, and return its result.

    Tasks that read the user's files or write the run folder need this, because other machines cannot access them.
    """
    return cast("Callable[..., Any]", task)(*arguments)


def _is_transient(_task: Task[..., Any], _run: TaskRun, state: State[Any]) -> bool:
    return isinstance(state.data, ConnectionError | TimeoutError)
