"""Declare the options that say where the stages of a run are computed."""

from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BeforeValidator, model_validator

from tasks.options.judge_options import JudgeOptions
from tasks.options.option import Option, OptionGroup


class RunnerOptions(OptionGroup, affects_scores=False):
    """Options of the engine that computes the stages."""

    engine: Annotated[
        Literal["threads", "dask", "ray"], Option("Threads in the process of the run, or processes of Dask or Ray.")
    ] = "threads"
    address: Annotated[
        str | None,
        Option(
            "For dask and ray: address of a running cluster. Default: a cluster on this machine that ends with "
            "the run.",
            holds="text",
            examples=["tcp://scheduler.example:8786", "ray://head.example:10001"],
        ),
    ] = None

    @model_validator(mode="after")
    def _is_reachable(self) -> Self:
        if self.engine == "threads" and self.address is not None:
            raise ValueError("threads have no address; name the engine of the cluster, dask or ray")
        return self

    @property
    def is_elsewhere(self) -> bool:
        """Whether stages may run on other machines."""
        return self.address is not None


def parse_runner(value: Any) -> Any:
    """Return the options of a runner that is given as its engine or the address of its cluster.

    >>> parse_runner("dask"), parse_runner("ray://head:10001")
    ({'engine': 'dask'}, {'engine': 'ray', 'address': 'ray://head:10001'})
    """
    if not isinstance(value, str):
        return value
    if "://" not in value:
        return {"engine": value}
    scheme = value.partition("://")[0]
    return {"engine": scheme if scheme in get_args(RunnerOptions.model_fields["engine"].annotation) else "dask"} | {
        "address": value
    }


SHARD_ROWS, SHARD_ROWS_ELSEWHERE = 1000, 200
"""Default rows per shard: a task of Prefect costs little then. In other processes the stages of a shard cannot pass
rows on to each other; with a judge server there are fewer, for its prefix cache."""

WINDOW_ROWS, WINDOW_ROWS_OF_A_SERVER = 200, 25
"""Rows per window, which stages pass on to each other; with a judge server, few enough for its prefix cache."""

WORKERS, WORKERS_OF_A_SERVER = 4, 12
"""Default number of windows at the same time: while some prepare questions, others keep a server busy. With a judge
server, enough for the four windows of each of three stages that wait for no other: some ask for texts, some for labels,
whose prompts a server reads while it writes the texts."""


class ExecutionOptions(JudgeOptions, affects_scores=False):
    """Options that say where and how the stages are computed."""

    shard_rows: Annotated[
        int | None,
        Option("Rows per shard. Default: 1000; 200 with a judge server and dask or ray.", ge=1, examples=[100]),
    ] = None
    workers: Annotated[
        int | None,
        Option(
            "Number of stages that compute at the same time. Default: 12 threads with a judge server, else 4.",
            ge=1,
            examples=[4],
        ),
    ] = None
    runner: Annotated[
        Annotated[RunnerOptions, BeforeValidator(parse_runner)],
        Option(
            "Where stages are computed: threads, dask or ray, or the address of a cluster.",
            examples=["dask", "ray://head.example:10001"],
        ),
    ] = RunnerOptions()

    def rows_a_shard(self) -> int:
        """Return the number of rows per shard."""
        if self.shard_rows is not None:
            return self.shard_rows
        return SHARD_ROWS_ELSEWHERE if self._is_served() and self.runner.engine != "threads" else SHARD_ROWS

    def rows_a_window(self) -> int:
        """Return the number of rows that stages compute at once and pass on to each other.

        Few with a judge server: later questions about a passage then find it in the server's prefix cache.
        """
        return WINDOW_ROWS_OF_A_SERVER if self._is_served() else WINDOW_ROWS

    def stages_at_once(self) -> int:
        """Return the maximum number of concurrent stages.

        More with a judge server, because most of them wait for it, except on a cluster: each process loads its models.
        """
        if self.workers is not None:
            return self.workers
        return WORKERS_OF_A_SERVER if self._is_served() and self.runner.engine == "threads" else WORKERS

    def _is_served(self) -> bool:
        return any(judge.answering_facts.is_served for judge in self.judges)
