"""Declare the options that say what a judge costs, and what a run may cost at most."""

import re
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, model_validator

from metric_core.errors import ConfigError
from tasks.options.option import Flag, Option, OptionGroup

_MILLION = 1_000_000
_TOKENS = re.compile(r"(?P<number>[0-9][0-9_,]*(?:\.[0-9]+)?)\s*(?P<unit>[kKmMbB]?)\s*tokens?", re.ASCII)
_MONEY = re.compile(r"[0-9]+(?:\.[0-9]+)?", re.ASCII)
_UNITS = {"": 1, "k": 1_000, "m": _MILLION, "b": 1_000 * _MILLION}
_FORMS = "an amount of money such as 2.50, in the currency of the prices, or of tokens such as '20M tokens'"


class Prices(OptionGroup, affects_scores=False):
    """Prices of what a judge server computes."""

    prompt: Annotated[
        float | None, Option("Price of a million prompt tokens.", ge=0, allow_inf_nan=False, examples=[0.15])
    ] = None
    cached_prompt: Annotated[
        float | None,
        Option(
            "Price of a million prompt tokens that the server finds in its prefix cache. Default: that of prompt "
            "tokens. Tokens not reported as cached count as prompt tokens.",
            ge=0,
            allow_inf_nan=False,
            examples=[0.075],
        ),
    ] = None
    output: Annotated[
        float | None, Option("Price of a million generated tokens.", ge=0, allow_inf_nan=False, examples=[0.6])
    ] = None
    gpu_hour: Annotated[
        float | None,
        Option(
            "Price of an hour of one GPU. It counts from the first request of a run to its last reply.",
            ge=0,
            allow_inf_nan=False,
            examples=[3.5],
        ),
    ] = None
    gpus: Annotated[int, Option("Number of GPUs that the hour is paid for.", ge=1)] = 1
    currency: Annotated[
        str, Option("Currency of the prices, for display.", holds="text", min_length=1, max_length=8)
    ] = "USD"

    @property
    def are_known(self) -> bool:
        """Whether anything has a price."""
        return any(price is not None for price in (self.prompt, self.cached_prompt, self.output, self.gpu_hour))


class Budget(OptionGroup, affects_scores=False):
    """The most that a run may cost."""

    tokens: Annotated[
        int | None, Option("Largest number of tokens, sent and generated.", ge=1, examples=[20_000_000])
    ] = None
    money: Annotated[
        float | None,
        Option("Largest amount of money, in the currency of the prices.", gt=0, allow_inf_nan=False, examples=[2.5]),
    ] = None


def parse_budget(value: Any) -> Any:
    """Return the options of a budget that is given as one number or text.

    >>> parse_budget("20M tokens"), parse_budget("2.50"), parse_budget(3)
    ({'tokens': 20000000}, {'money': 2.5}, {'money': 3})

    Raises:
        ValueError: The text is neither an amount of money nor one of tokens.
    """
    if isinstance(value, int | float) and not isinstance(value, bool):
        return {"money": value}
    if not isinstance(value, str):
        return value
    text = value.strip()
    if (tokens := _TOKENS.fullmatch(text)) is not None:
        number = float(re.sub("[_,]", "", tokens["number"]))
        return {"tokens": round(number * _UNITS[tokens["unit"].lower()])}
    if _MONEY.fullmatch(text):
        return {"money": float(text)}
    raise ValueError(f"a budget is {_FORMS}")


class CostOptions(OptionGroup, affects_scores=False):
    """Options that say what a run costs, and what it may cost."""

    prices: Annotated[
        Prices,
        Option(
            "Prices of the judge, with which plans, summaries and the history show money. server.prices of a judge "
            "replaces them for that judge."
        ),
    ] = Prices()
    budget: Annotated[
        Annotated[Budget, BeforeValidator(parse_budget)] | None,
        Option(
            "The most that the judge may cost in a run: money, which needs prices, or tokens. A run that reaches it "
            "stops; its answers are cached, and the same command continues from there.",
            cli=Flag(
                long="--budget",
                metavar="MONEY|TOKENS",
                help="Stop when the judge has cost this much: 2.50 (needs prices) or '20M tokens'.",
            ),
            examples=["20M tokens", 2.5],
        ),
    ] = None

    @property
    def all_prices(self) -> tuple[Prices, ...]:
        """All prices of the configuration."""
        return (self.prices,)

    @property
    def has_prices(self) -> bool:
        """Whether anything of any judge has a price."""
        return any(prices.are_known for prices in self.all_prices)

    @property
    def currency(self) -> str:
        """The currency of all prices."""
        return next((prices.currency for prices in self.all_prices if prices.are_known), self.prices.currency)

    @model_validator(mode="after")
    def _can_be_counted(self) -> Self:
        currencies = sorted({prices.currency for prices in self.all_prices if prices.are_known})
        if len(currencies) > 1:
            raise ValueError(
                f"the judges have prices in {' and '.join(currencies)}, which cannot be added: give all in one currency"
            )
        if (problem := self._uncounted_budget) is not None:
            raise ValueError(problem)
        return self

    def refuse_uncounted_budget(self) -> None:
        """Raise an error if the budget is in money and nothing has a price.

        Raises:
            ConfigError: It is; the message says what to set.
        """
        if (problem := self._uncounted_budget) is not None:
            raise ConfigError(problem)

    @property
    def _uncounted_budget(self) -> str | None:
        if self.budget is not None and self.budget.money is not None and not self.has_prices:
            return (
                f"budget is {self.budget.money:g} in money, but nothing has a price: set prices.prompt, prices.output "
                "or prices.gpu_hour, or give the budget in tokens, such as '20M tokens'"
            )
        return None
