"""Where the stages of a run are computed, as a user says it: one word, or a table with an address."""

from typing import Any, Literal, Self, get_args

from pydantic import Field, model_validator

from tasks.options.model_options import Settings


class RunnerOptions(Settings):
    """Where the stages of a run are computed.

    Args:
        engine: `threads` of the run's own process, or processes of `dask` or `ray`.
        address: for dask and ray, a cluster that is running; without it, one on this machine for as long as the run.
    """

    engine: Literal["threads", "dask", "ray"] = Field("threads", description="threads, dask or ray")
    address: str | None = Field(
        None,
        description="for dask and ray: a cluster that is running; without it, one on this machine for the run",
        examples=["tcp://scheduler.example:8786", "ray://head.example:10001"],
    )

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
    """A runner by one word -> its options: an engine, or the address of a cluster.

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
