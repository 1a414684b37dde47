"""The cost of a run and the speed of its judge servers in its record."""

from tasks.record.part import Part


class CostOfJudge(Part):
    """The cost of the questions of a judge.

    Args:
        judge: Name of the judge; empty for all without prices of their own.
    """

    judge: str
    total: float


class CostRecord(Part):
    """The cost of the questions of a run.

    Args:
        judges: Costs by judge, if some have prices of their own.
    """

    currency: str
    total: float
    prompt: float
    cached_prompt: float
    output: float
    gpu: float
    judges: tuple[CostOfJudge, ...] = ()


class ServerThroughput(Part):
    """The speed of a judge server.

    Args:
        server: Address of the server.
        seconds: Time in which it had requests.
        rows_per_second: Rows of the run by these seconds; None without any.
        cached_tokens: Prompt tokens that it found in its prefix cache; None if it does not say.
        cached_tokens_from: `replies`, `counters` or `estimate`.
        estimated_cached_tokens: Estimate of these tokens.
        prompt_tokens_per_second: Prompt tokens that it computed, by these seconds.
        in_flight: Mean number of conversations in flight.
        slots: Largest number of conversations in flight.
    """

    server: str
    seconds: float
    rows_per_second: float | None
    requests: int
    prompt_tokens: int
    cached_tokens: int | None
    cached_tokens_from: str
    estimated_cached_tokens: int
    output_tokens: int
    prompt_tokens_per_second: float | None
    output_tokens_per_second: float | None
    in_flight: float
    slots: int


class ThroughputRecord(Part):
    """The speed of the judge servers of a run.

    Args:
        rows: Number of rows that were evaluated.
        servers: Speed of each server.
    """

    rows: int
    servers: tuple[ServerThroughput, ...]
