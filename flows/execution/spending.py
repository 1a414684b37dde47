"""Meter what a run asks of its judge, and write its cost into run.json."""

from contextlib import AbstractContextManager
from typing import Any

from metric_core.question_kinds import ON_CLAIMS, KindGroup
from tasks.metering.accounts import Account, account_of
from tasks.metering.meter import ASSUMED, Meter, current_meter, use_meter
from tasks.metering.money import money_of
from tasks.options.cost_options import CostOptions, Prices
from tasks.options.judge_options import SingleJudgeSettings
from tasks.options.run_model_options import RunModelOptions
from tasks.runs.judge_roles import groups_of
from tasks.runtime.usage import KindUsage, StageUsage, Usage


def meter_run(costs: CostOptions) -> AbstractContextManager[Meter]:
    """Count the requests of a block to the judge of a run, and end it once its budget is spent."""
    return use_meter(Meter(costs.prices, costs.budget))


def count_elsewhere(models: RunModelOptions, usage: StageUsage) -> None:
    """Count what a stage asked in another process, where the run has no meter.

    Such a process reports its questions per kind, not per judge. Where judges with different prices may have answered
    a kind, as in a panel, its tokens count at the prices of the dearest.

    Args:
        usage: Cost of the stage's table, which was computed in this run.

    Raises:
        BudgetSpentError: The budget is spent.
    """
    if (meter := current_meter()) is None:
        return
    for kind, of_kind in usage.kinds.items():
        meter.count_elsewhere(_usage_of(of_kind), _account(models, kind))


def _account(models: RunModelOptions, kind: str) -> Account | None:
    """Return the account that questions of a kind are charged to in another process; None for the prices of the run."""
    (group,) = groups_of([kind])
    judges = models.judges_of(KindGroup(group))
    if judges[0].profile is not None and kind not in ON_CLAIMS:
        judges += models.judge, *models.others  # a model that only verifies passes other questions on
    charged = [account_of(judge.server, _model_of(judge)) for judge in judges]
    return max(charged, key=lambda account: _price(models.prices if account is None else account.prices))


def _price(prices: Prices) -> float:
    money = money_of(prices, ASSUMED, 0.0)
    return 0.0 if money is None else money.total


def _model_of(judge: SingleJudgeSettings) -> str:
    server = judge.server
    return judge.backend if server is None else server.model or " and ".join(server.urls)


def spent_entries() -> dict[str, Any]:
    """Return the entries of the record on what a run that did not finish has asked; none if it asked nothing."""
    meter = current_meter()
    if meter is None:
        return {}
    usage = meter.usage
    names = ("requests", "prompt_tokens", "cached_tokens", "output_tokens", "seconds")
    spent = StageUsage(**{name: getattr(usage, name) for name in names})
    return {"usage": spent} if usage.requests else {}


def _usage_of(usage: KindUsage) -> Usage:
    return Usage(
        requests=usage.requests,
        prompt_tokens=usage.prompt_tokens,
        cached_tokens=usage.cached_tokens,
        output_tokens=usage.output_tokens,
    )
