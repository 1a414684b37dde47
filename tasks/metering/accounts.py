"""Charge the work of each judge to the prices that hold for it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tasks.metering.money import Money, money_of
from tasks.options.cost_options import Prices
from tasks.options.judge_server_options import ServerJudgeOptions
from tasks.runtime.usage import Usage


@dataclass(frozen=True, slots=True)
class Account:
    """An account for the work of a judge with separate prices.

    Args:
        judge: Name of its model.
    """

    judge: str
    prices: Prices


def account_of(server: ServerJudgeOptions | None, model: str) -> Account | None:
    """Return the account of a judge; None if it has no separate prices.

    Args:
        server: Options of its server; None for a judge without one.
    """
    return None if server is None or server.prices is None else Account(model, server.prices)


@dataclass(slots=True)
class Charges:
    """The requests that are charged to one account."""

    usage: Usage = field(default_factory=Usage)
    conversations: int = 0
    in_flight: int = 0
    first: float | None = None
    last: float = 0.0

    def total(self) -> Usage:
        """Return the requests and tokens, with the seconds from the first request to the last reply."""
        return replace(self.usage, seconds=0.0 if self.first is None else self.last - self.first)


def sum_by_judge(usages: Mapping[Account | None, Usage], prices: Prices) -> dict[str, Money]:
    """Return the price of the work of each judge with separate prices, and that of the others under "".

    Args:
        usages: Work that is charged to each account; under None, that of judges without separate prices.

    >>> verifier = Account("verifier", Prices(prompt=0.1))
    >>> work = Usage(prompt_tokens=2_000_000)
    >>> {name: money.total for name, money in sum_by_judge({None: work, verifier: work}, Prices(prompt=3)).items()}
    {'': 6.0, 'verifier': 0.2}
    """
    found: dict[str, Money] = {}
    for account, usage in usages.items():
        name, of_judge = ("", prices) if account is None else (account.judge, account.prices)
        if (money := money_of(of_judge, usage, usage.seconds)) is not None:
            found[name] = found[name] + money if name in found else money
    return found
