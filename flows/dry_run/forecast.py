"""Predict the time and the money of a run from its dry run: tokens at rates that were measured before, or are given."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from flows.dry_run.dry_run_result import DryRun
from flows.planning.run_plan import RunPlan
from metric_core.errors import AssayError
from tasks.history.catalogue import Catalogue
from tasks.history.recorded_run import JUDGE, SERVED, STARTED, RecordedRun
from tasks.history.run_entry import describe_model, shorten_digest
from tasks.metering.accounts import sum_by_judge
from tasks.metering.money import Money, add_money
from tasks.metering.throughput import ThroughputRecord
from tasks.models.judges.protocol import JudgeIdentity
from tasks.opening.counting_judge import Tally
from tasks.options.cost_options import Budget, Prices
from tasks.processes.judge_service import find_speed
from tasks.processes.speed import describe_speed
from tasks.runtime.home import assay_home
from tasks.runtime.usage import Usage

_LAST_RUNS = 200
"""Number of recorded runs, the latest of all evaluations, among which one with the same judge is looked for."""


@dataclass(frozen=True, slots=True)
class Rates:
    """The rates of a judge server.

    Args:
        seconds_per_prompt_token: Seconds per prompt token that is not cached.
        words: Origin of the rates, in words that follow "at".
        measured: Start of the run that the rates are of; None for others.
    """

    seconds_per_prompt_token: float
    seconds_per_output_token: float
    words: str = "the given rates"
    measured: datetime | None = None

    @classmethod
    def from_speeds(cls, prompt: float, output: float, words: str = "the given rates") -> "Rates":
        """Return rates that are given in tokens per second.

        Args:
            prompt: Prompt tokens per second that are not cached.
            words: Origin of the rates.
        """
        return cls(1 / prompt, 1 / output, words)

    def seconds(self, tally: Tally) -> float:
        """Return the time that the questions of a dry run take."""
        computed = tally.prompt_tokens - tally.cached_tokens
        return self.seconds_per_prompt_token * computed + self.seconds_per_output_token * tally.output_tokens


@dataclass(frozen=True, slots=True)
class Forecast:
    """The predicted cost of a run.

    Args:
        rates: Rates of the judge server; None if they are not known.
        seconds: Seconds that the judge needs; None without rates.
        money: Price of the judge's work; None if nothing has a price, or the time is needed and not known.
        covered: True if the budget covers it; None without a budget, or if that is unknown.
        by_judge: Price of each judge with separate prices, and that of the others under "".
        unknown_runs: Sentence on why the history, which has the rates, cannot be read; empty if it can, or is not.
    """

    rates: Rates | None
    seconds: float | None
    money: Money | None
    covered: bool | None
    by_judge: Mapping[str, Money] = field(default_factory=dict)
    unknown_runs: str = ""


def make_forecast(plan: RunPlan, dry_run: DryRun, rates: Rates | None = None) -> Forecast:
    """Return the predicted cost of a run.

    Args:
        rates: Rates of the judge server; None for those that were measured when it was launched here, or else for those
            of the last run with the same judge in the history.
    """
    tally, unknown = dry_run.tally, ""
    if rates is None and tally.requests:
        try:
            rates = find_launched_rates(plan) or _find_rates(plan.outputs.history, dry_run.judge)
        except AssayError as error:
            unknown = str(error)
    seconds = 0.0 if not tally.requests else None if rates is None else rates.seconds(tally)
    by_judge = _money_by_judge(plan.models.prices, dry_run, rates)
    money = None if by_judge is None else add_money(by_judge.values())
    return Forecast(rates, seconds, money, _is_covered(plan.models.budget, tally, money), by_judge or {}, unknown)


def find_launched_rates(plan: RunPlan) -> Rates | None:
    """Return the rates of the judge of a run that were measured when it was launched on this machine, if they were."""
    server = plan.models.judge.server
    speed = None if server is None else find_speed(assay_home(), server.urls)
    if speed is None:
        return None
    return Rates.from_speeds(*speed, f"what was measured when the judge was started ({describe_speed(speed)})")


def _money_by_judge(prices: Prices, dry_run: DryRun, rates: Rates | None) -> dict[str, Money] | None:
    """Return the price of the work of each judge; None if one has a price per hour and its time is not known."""
    accounts = dry_run.accounts or {None: dry_run.tally}
    used = [prices if account is None else account.prices for account, tally in accounts.items() if tally.requests]
    if rates is None and any(each.gpu_hour is not None for each in used):
        return None
    usages = {
        account: Usage(
            requests=tally.requests,
            prompt_tokens=tally.prompt_tokens,
            cached_tokens=tally.cached_tokens,
            output_tokens=tally.output_tokens,
            seconds=0.0 if rates is None else rates.seconds(tally),
        )
        for account, tally in accounts.items()
    }
    return sum_by_judge(usages, prices)


def _is_covered(budget: Budget | None, tally: Tally, money: Money | None) -> bool | None:
    if budget is None or (budget.money is not None and money is None):
        return None
    tokens = tally.prompt_tokens + tally.output_tokens
    enough_tokens = budget.tokens is None or tokens < budget.tokens
    return enough_tokens and (budget.money is None or money is None or money.total < budget.money)


def _find_rates(history: str | None, judge: JudgeIdentity | None) -> Rates | None:
    """Return the rates of the last run with a judge; None if there is none.

    Raises:
        ConfigError: The history cannot be read.
    """
    if judge is None:
        return None
    runs = Catalogue(history).runs(last=_LAST_RUNS, statuses=STARTED)
    wanted = {JUDGE: describe_model(judge)}
    wanted |= {SERVED: shorten_digest(judge.served)} if judge.served else {}
    found = (
        rates
        for run in sorted(runs, key=lambda run: run.created, reverse=True)
        if all(run.versions.get(key) == value for key, value in wanted.items())
        for rates in _rates_of(run)
    )
    return next(found, None)


def _rates_of(run: RecordedRun) -> Iterator[Rates]:
    """Yield the rates of a run with one judge server: it had so many tokens of both kinds per second."""
    throughput = run.details.find(ThroughputRecord)
    servers = () if throughput is None else throughput.servers
    for server in servers if len(servers) == 1 else ():
        tokens = (server.prompt_tokens_per_second or 0.0) + (server.output_tokens_per_second or 0.0)
        if tokens:
            words = f"the tokens per second of the run on {run.created:%Y-%m-%d}"
            yield Rates(1 / tokens, 1 / tokens, words, run.created)
