"""Turn tokens and hours into money."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tasks.metering.cost import CostOfJudge, CostRecord
from tasks.options.cost_options import Prices
from tasks.runtime.usage import Usage

_MILLION = 1_000_000
_HOUR = 3600.0


@dataclass(frozen=True, slots=True)
class Money:
    """The price of the work of a judge, in parts.

    Args:
        prompt: Price of the prompt tokens that were not in the prefix cache.
        cached_prompt: Price of the prompt tokens that were.
        output: Price of the generated tokens.
        gpu: Price of the time of the GPUs.
    """

    currency: str
    prompt: float = 0.0
    cached_prompt: float = 0.0
    output: float = 0.0
    gpu: float = 0.0

    @property
    def total(self) -> float:
        """The sum of all parts."""
        return _round(self.prompt + self.cached_prompt + self.output + self.gpu)

    def __add__(self, other: "Money") -> "Money":
        """Return the sum of two amounts in the same currency."""
        return Money(
            self.currency,
            prompt=_round(self.prompt + other.prompt),
            cached_prompt=_round(self.cached_prompt + other.cached_prompt),
            output=_round(self.output + other.output),
            gpu=_round(self.gpu + other.gpu),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the content for run.json."""
        parts = {name: round(getattr(self, name), 6) for name in ("prompt", "cached_prompt", "output", "gpu")}
        return {"currency": self.currency, "total": round(self.total, 6), **parts}


def money_of(prices: Prices, usage: Usage, seconds: float) -> Money | None:
    """Return the price of the work of a judge; None if nothing has a price.

    Args:
        usage: Tokens that were sent and generated.
        seconds: Seconds for which the judge was in use.

    >>> usage = Usage(prompt_tokens=3_000_000, cached_tokens=1_000_000, output_tokens=500_000)
    >>> money_of(Prices(prompt=0.2, cached_prompt=0.1, output=0.6), usage, 60.0).total
    0.8

    Without a separate price, cached tokens cost as much as others.

    >>> money_of(Prices(prompt=0.2), usage, 60.0).total, money_of(Prices(gpu_hour=3.0, gpus=2), usage, 1800.0).total
    (0.6, 3.0)
    """
    if not prices.are_known:
        return None
    prompt = prices.prompt or 0.0
    cached = prompt if prices.cached_prompt is None else prices.cached_prompt
    gpu = (prices.gpu_hour or 0.0) * prices.gpus * seconds / _HOUR
    return Money(
        currency=prices.currency,
        prompt=_round(prompt * (usage.prompt_tokens - usage.cached_tokens) / _MILLION),
        cached_prompt=_round(cached * usage.cached_tokens / _MILLION),
        output=_round((prices.output or 0.0) * usage.output_tokens / _MILLION),
        gpu=_round(gpu),
    )


def add_money(parts: Iterable[Money | None]) -> Money | None:
    """Return the sum of several amounts; None if none is known.

    >>> add_money([Money("USD", output=0.5), None, Money("USD", output=0.25)]).total, add_money([None])
    (0.75, None)
    """
    known = [part for part in parts if part is not None]
    return sum(known[1:], known[0]) if known else None


def total_cost(by_judge: Mapping[str, Money]) -> CostRecord | None:
    """Return what all judges together have cost, for the record of a run; None if nothing has a price.

    Args:
        by_judge: Name of each judge with separate prices -> price of its work; that of the others under "".

    >>> total_cost({"": Money("USD", output=0.5), "verifier": Money("USD", prompt=0.1)}).judges[1]
    CostOfJudge(judge='verifier', total=0.1)
    """
    if (money := add_money(by_judge.values())) is None:
        return None
    judges = tuple(CostOfJudge(judge=name, total=round(each.total, 6)) for name, each in by_judge.items())
    cost = CostRecord(**money.to_json())
    return cost.extend(judges=judges) if any(by_judge) else cost


def _round(amount: float) -> float:
    return round(amount, 9)


def format_money(amount: float, currency: str) -> str:
    """Return an amount with its currency, with enough digits to distinguish small amounts from nothing.

    >>> format_money(12.5, "USD"), format_money(0.00123, "EUR"), format_money(0, "USD"), format_money(1234.5, "USD")
    ('12.50 USD', '0.0012 EUR', '0 USD', '1,234.50 USD')
    """
    if not amount:
        return f"0 {currency}"
    return f"{amount:,.2f} {currency}" if amount >= 0.1 else f"{amount:.2g} {currency}"


def money_text(cost: CostRecord | None) -> str | None:
    """Return what a run has cost as text, with its parts; None if there is none.

    >>> one = {"currency": "USD", "total": 0.9, "prompt": 0.5, "cached_prompt": 0.0, "output": 0.4, "gpu": 0.0}
    >>> money_text(CostRecord(**one))
    '0.90 USD (prompt tokens 0.50, output tokens 0.40)'
    >>> judges = (CostOfJudge(judge="", total=0.4), CostOfJudge(judge="verifier", total=0.1))
    >>> money_text(CostRecord(**one | {"total": 0.5, "output": 0.0}, judges=judges))
    '0.50 USD: other judges 0.40 USD, verifier 0.10 USD'
    """
    if cost is None:
        return None
    amounts = {"prompt tokens": cost.prompt, "cached tokens": cost.cached_prompt, "output tokens": cost.output}
    parts = [
        f"{words} {format_money(amount, cost.currency).removesuffix(f' {cost.currency}')}"
        for words, amount in {**amounts, "GPUs": cost.gpu}.items()
        if amount
    ]
    total = format_money(cost.total, cost.currency)
    text = f"{total} ({', '.join(parts)})" if len(parts) > 1 else total
    by_judge = [f"{each.judge or 'other judges'} {format_money(each.total, cost.currency)}" for each in cost.judges]
    return f"{text}: {', '.join(by_judge)}" if len(by_judge) > 1 else text
