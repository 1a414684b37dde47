"""Fit the rates of a model server to the requests of a run.

A server that has enough to do takes u/P + o/D seconds for u prompt tokens that it must compute and o tokens that it
generates. P and D are fitted by least squares to the busy parts of a run, which differ in their mix of prompt and
output tokens: claims are long replies, verdicts are long prompts.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from tasks.metering.timeline import RunSegment

FEWEST_WINDOWS = 8
"""Parts of a run from which rates are fitted."""

FEWEST_REPLIES = 8
"""Replies in each part, in the mean."""

SHORTEST_WINDOW = 0.5
_LATENCIES = 2.0
"""Length of a part in latencies: most of the tokens that arrive in it were computed in it."""

_BUSY = 0.5
"""Least number of conversations in flight in a busy part, as a share of the most."""

MOST_UNCERTAIN = 0.5
"""Largest standard error of a rate that is reported, as a share of the rate."""


@dataclass(frozen=True, slots=True)
class ServerRates:
    """The rates of a server in a run.

    Args:
        seconds_per_prompt_token: Seconds per prompt token that must be computed, 1/P.
        seconds_per_output_token: Seconds per generated token, 1/D.
        prompt_rate: P in tokens per second; None if the run does not determine it.
        output_rate: D in tokens per second; None if the run does not determine it.
        windows: Number of parts of the run that the rates were fitted to.
        in_flight: Mean number of conversations in flight in these parts.
    """

    seconds_per_prompt_token: float
    seconds_per_output_token: float
    prompt_rate: float | None
    output_rate: float | None
    windows: int
    in_flight: float

    def seconds(self, prompt_tokens: float, output_tokens: float) -> float:
        """Return the least time that the server needs for tokens."""
        return self.seconds_per_prompt_token * prompt_tokens + self.seconds_per_output_token * output_tokens


def fit_rates(intervals: Sequence[RunSegment]) -> ServerRates | None:
    """Return the rates of a server; None if the run is too short.

    >>> mixes = [(900, 10), (100, 90), (500, 50), (1000, 0)] * 4
    >>> busy = [RunSegment(u / 1000 + o / 100, 0.0, replies=8, prompt_tokens=u, output_tokens=o) for u, o in mixes]
    >>> rates = fit_rates(busy)
    >>> rates and (round(rates.prompt_rate or 0), round(rates.output_rate or 0), rates.windows)
    (1000, 100, 16)
    >>> fit_rates(busy[:4]) is None
    True
    """
    windows = join_intervals(intervals)
    most = max((window.in_flight / window.seconds for window in windows), default=0.0)
    busy = [window for window in windows if window.in_flight >= _BUSY * most * window.seconds]
    if len(busy) < FEWEST_WINDOWS or sum(window.replies for window in busy) < FEWEST_REPLIES * len(busy):
        return None
    fitted = _least_squares(busy)
    if fitted is None:
        return None
    (per_prompt, prompt_error), (per_output, output_error) = fitted
    return ServerRates(
        per_prompt,
        per_output,
        1 / per_prompt if prompt_error < MOST_UNCERTAIN * per_prompt else None,
        1 / per_output if output_error < MOST_UNCERTAIN * per_output else None,
        len(busy),
        sum(window.in_flight for window in busy) / sum(window.seconds for window in busy),
    )


def join_intervals(intervals: Sequence[RunSegment]) -> list[RunSegment]:
    """Return intervals joined into windows that are long compared with a request, and have some replies each."""
    replies = sum(interval.replies for interval in intervals)
    if not replies:
        return []
    total = sum(interval.seconds for interval in intervals)
    latency = sum(interval.in_flight for interval in intervals) / replies  # Little's law
    width = max(SHORTEST_WINDOW, _LATENCIES * latency, FEWEST_REPLIES * total / replies)
    windows, current = [], RunSegment()
    for interval in intervals:
        current += interval
        if current.seconds >= width:
            windows.append(current)
            current = RunSegment()
    return windows  # the rest is too short


def _least_squares(windows: Sequence[RunSegment]) -> tuple[tuple[float, float], tuple[float, float]] | None:
    """Return seconds per prompt and per output token, each with its standard error; neither is negative.

    A coefficient that would be negative is 0, and the other is fitted without it. None if nothing was computed.
    """
    prompts = math.fsum(w.prompt_tokens**2 for w in windows)
    outputs = math.fsum(w.output_tokens**2 for w in windows)
    both = math.fsum(w.prompt_tokens * w.output_tokens for w in windows)
    prompts_by_time = math.fsum(w.prompt_tokens * w.seconds for w in windows)
    outputs_by_time = math.fsum(w.output_tokens * w.seconds for w in windows)
    determinant = prompts * outputs - both * both
    if determinant > 1e-9 * prompts * outputs:
        per_prompt = (outputs * prompts_by_time - both * outputs_by_time) / determinant
        per_output = (prompts * outputs_by_time - both * prompts_by_time) / determinant
        if per_prompt > 0 and per_output > 0:
            variance = _variance(windows, per_prompt, per_output, 2)
            errors = math.sqrt(variance * outputs / determinant), math.sqrt(variance * prompts / determinant)
            return (per_prompt, errors[0]), (per_output, errors[1])
    alone = []
    if prompts:
        variance = _variance(windows, prompts_by_time / prompts, 0.0, 1)
        alone.append((variance, ((prompts_by_time / prompts, math.sqrt(variance / prompts)), (0.0, math.inf))))
    if outputs:
        variance = _variance(windows, 0.0, outputs_by_time / outputs, 1)
        alone.append((variance, ((0.0, math.inf), (outputs_by_time / outputs, math.sqrt(variance / outputs)))))
    return min(alone)[1] if alone else None


def _variance(windows: Sequence[RunSegment], per_prompt: float, per_output: float, parameters: int) -> float:
    residuals = (w.seconds - per_prompt * w.prompt_tokens - per_output * w.output_tokens for w in windows)
    return math.fsum(residual**2 for residual in residuals) / max(1, len(windows) - parameters)
