"""Meter the requests of a run to its judge, and stop it before it costs more than its budget.

The time and the tokens of each judge server are counted separately. The tokens and the money of all servers are counted
together, and a request is only sent if the budget allows it.
"""

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from threading import Lock

from metric_core.errors import BudgetSpentError
from tasks.metering.accounts import Account, Charges, sum_by_judge
from tasks.metering.money import Money, add_money, format_money, money_of
from tasks.metering.server_counters import CounterPoller, Counters, ReadCounters
from tasks.metering.server_counts import ReplyTokens, ServerCounts, ServerRequests
from tasks.metering.timeline import Timeline
from tasks.options.cost_options import Budget, Prices
from tasks.runtime.usage import Usage

ASSUMED = Usage(prompt_tokens=1000, output_tokens=200)
"""Tokens that a conversation is assumed to have before the first reply: rather too many, because a request that
waits for others costs less than one beyond the budget."""

_PAUSE = 0.02
"""Seconds between two looks at a budget that the requests in flight may use up."""


class Meter:
    """The requests of a run to its judge, over all servers and threads of this process.

    Args:
        prices: Prices of the judges that have no separate ones.
        budget: The most that the run may cost; None for no limit.
        clock: Returns the time in seconds.
    """

    def __init__(
        self,
        prices: Prices | None = None,
        budget: Budget | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._prices = prices or Prices()
        self._budget = budget
        self._clock = clock
        self._lock = Lock()
        self._watching = Lock()
        self._servers: dict[str, ServerCounts] = {}
        self._observers: dict[tuple[str, Account | None], ServerObserver] = {}
        self._accounts: dict[Account | None, Charges] = {None: Charges()}
        self._usage = Usage()
        self._first: float | None = None
        self._last = 0.0
        self._conversations = 0
        self._in_flight = 0

    def observe(
        self,
        name: str,
        slots: int,
        prompts: Iterable[tuple[str, int]] = (),
        counters: ReadCounters | None = None,
        account: Account | None = None,
    ) -> "ServerObserver":
        """Return the observer of some requests to a server.

        Args:
            name: Name of the server, equal for all connections to it.
            slots: Number of conversations that it may have in flight.
            prompts: Prompts of the requests, in their order, from which the share of cached tokens is estimated if the
                server does not report it; with each the number of characters that the next ones probably begin with
                too.
            counters: Reads the counters of the server; None if it offers none.
            account: Account of a judge with separate prices; None for the prices of the run.
        """
        if counters is not None and name not in self._servers:
            self._watch(name, slots, counters)
        with self._lock:
            server = self._server(name, slots)
            spent = self._accounts.setdefault(account, Charges())
            # One observer per server and account: requests of one observer may be sent together.
            observer = self._observers.setdefault((name, account), ServerObserver(self, server, spent))
            is_told = server.tells_cached and server.usage.requests > 0
        if not is_told:
            server.expect(prompts)
        return observer

    def _server(self, name: str, slots: int) -> ServerCounts:
        return self._servers.setdefault(name, ServerCounts(slots, Timeline()))

    def _watch(self, name: str, slots: int, counters: ReadCounters) -> None:
        """Read the counters of a server before the first request, and from then on."""
        with self._watching:
            if name in self._servers:
                return
            poller = CounterPoller(counters, lambda counted: self._count(name, counted))
            with self._lock:
                self._server(name, slots).poller = poller

    def _count(self, name: str, counted: Counters) -> None:
        with self._lock:
            self._servers[name].counted += counted

    def close(self) -> None:
        """Stop reading the counters of the servers."""
        for server in list(self._servers.values()):
            if server.poller is not None:
                server.poller.close()

    def count_elsewhere(self, usage: Usage, account: Account | None = None) -> None:
        """Count what another process asked.

        Args:
            account: Account of a judge with separate prices; None for the prices of the run.

        Raises:
            BudgetSpentError: The budget is spent.
        """
        with self._lock:
            self._usage += usage
            spent = self._accounts.setdefault(account, Charges())
            spent.usage += usage
            spent.conversations += usage.requests
            self._conversations += usage.requests
            self._check()

    @property
    def usage(self) -> Usage:
        """Requests and tokens so far; the seconds are those from the first request to the last reply."""
        with self._lock:
            return self._total()

    @property
    def money(self) -> Money | None:
        """The price of the work so far; None if nothing has a price."""
        return add_money(self.money_by_judge.values())

    @property
    def money_by_judge(self) -> dict[str, Money]:
        """The price of the work so far of each judge with separate prices, and that of the others under ""."""
        with self._lock:
            return self._money_by_judge()

    def _money_by_judge(self) -> dict[str, Money]:
        return sum_by_judge({account: charges.total() for account, charges in self._accounts.items()}, self._prices)

    def records(self) -> list[ServerRequests]:
        """Return a record of each server that was asked anything."""
        for poller in [server.poller for server in list(self._servers.values())]:
            if poller is not None:
                poller.look()
        with self._lock:
            return [
                ServerRequests(
                    name,
                    server.slots,
                    replace(server.usage, seconds=server.timeline.seconds),
                    server.tells_cached,
                    server.estimated_cached,
                    server.timeline.in_flight,
                    server.own_counts(),
                )
                for name, server in self._servers.items()
                if not server.timeline.is_empty
            ]

    async def _admit(self, spent: Charges, conversations: int) -> None:
        while self._budget is not None and not self._reserve(spent, conversations):
            await asyncio.sleep(_PAUSE)

    def _reserve(self, spent: Charges, conversations: int) -> bool:
        """Return whether the budget covers more conversations beside those in flight; it may if others are done.

        Raises:
            BudgetSpentError: The budget is spent.
        """
        with self._lock:
            self._check()
            if self._in_flight and self._is_beyond(spent, conversations):
                return False
            self._in_flight += conversations
            spent.in_flight += conversations
            return True

    def _check(self) -> None:
        if self._is_beyond():
            raise BudgetSpentError(self._describe())

    def _is_beyond(self, asking: Charges | None = None, conversations: int = 0) -> bool:
        """Return whether the budget is spent.

        Args:
            asking: Account that asks more, so that what is in flight counts as if it were answered; None for now.
            conversations: Number of further conversations.
        """
        if self._budget is None:
            return False
        known = self._total()
        mean, answered = (known, self._conversations) if self._conversations else (ASSUMED, 1)
        share = 0.0 if asking is None else (self._in_flight + conversations) / answered
        tokens = known.prompt_tokens + known.output_tokens + (mean.prompt_tokens + mean.output_tokens) * share
        if self._budget.tokens is not None and tokens >= self._budget.tokens:
            return True
        if self._budget.money is None or (money := add_money(self._money_by_judge().values())) is None:
            return False
        expected = 0.0
        for account, spent in self._accounts.items() if asking is not None else ():
            unanswered = spent.in_flight + (conversations if spent is asking else 0)
            mean, answered = (spent.usage, spent.conversations) if spent.conversations else (ASSUMED, 1)
            more = money_of(self._prices if account is None else account.prices, mean, 0.0)
            expected += 0.0 if more is None else more.total * unanswered / answered
        return money.total + expected >= self._budget.money

    def _total(self) -> Usage:
        seconds = 0.0 if self._first is None else self._last - self._first
        return Usage(
            requests=self._usage.requests,
            prompt_tokens=self._usage.prompt_tokens,
            cached_tokens=self._usage.cached_tokens,
            output_tokens=self._usage.output_tokens,
            seconds=seconds,
        )

    def _describe(self) -> str:
        usage, budget = self._total(), self._budget or Budget()
        spent = f"{usage.prompt_tokens:,} prompt tokens and {usage.output_tokens:,} output tokens"
        money = add_money(self._money_by_judge().values())
        if money is not None:
            spent = f"{format_money(money.total, money.currency)} for {spent}"
        limit = f"{budget.tokens:,} tokens" if budget.tokens is not None else ""
        if budget.money is not None:
            amount = format_money(budget.money, self._prices.currency if money is None else money.currency)
            limit = f"{limit} and {amount}" if limit else amount
        return (
            f"the budget of {limit} is spent: {spent} in {usage.requests:,} requests. Their answers and the finished "
            "stage tables are cached. Raise the budget (--budget) and repeat the command: it continues from there"
        )

    def _start(self, server: ServerCounts, spent: Charges, conversations: int) -> None:
        with self._lock:
            now = self._clock()
            if self._first is None:
                self._first = self._last = now
            if spent.first is None:
                spent.first = spent.last = now
            server.timeline.start_request(now, conversations)

    def _end(self, server: ServerCounts, spent: Charges, conversations: int, tokens: ReplyTokens | None) -> None:
        answered = tokens or ReplyTokens(0, 0, 0)
        cached = min(answered.cached or 0, answered.prompt)
        estimated = cached if answered.cached is not None else round(server.cached_share * answered.prompt)
        usage = Usage(requests=1, prompt_tokens=answered.prompt, cached_tokens=cached, output_tokens=answered.output)
        with self._lock:
            now = self._clock()
            self._last = max(self._last, now)
            spent.last = max(spent.last, now)
            spent.usage += usage
            if self._budget is not None:
                self._in_flight -= conversations
                spent.in_flight -= conversations
            if tokens is not None:
                self._conversations += conversations
                spent.conversations += conversations
            self._usage += usage
            server.usage += usage
            server.tells_cached = server.tells_cached and answered.cached is not None
            server.estimated_cached += estimated
            server.timeline.end_request(now, conversations)


class ServerObserver:
    """An observer of the requests to one server, which the replica pool notifies of each.

    Args:
        spent: Counts of the account that is charged.
    """

    def __init__(self, meter: Meter, server: ServerCounts, spent: Charges) -> None:
        self._meter = meter
        self._server = server
        self._spent = spent

    async def begin(self, conversations: int) -> Callable[[ReplyTokens | None], None]:
        """Wait until the budget allows a request, and count it.

        Returns:
            A function to call with the tokens of the reply, or with None if there is none.

        Raises:
            BudgetSpentError: The budget is spent.
        """
        await self._meter._admit(self._spent, conversations)  # noqa: SLF001 the observer is a part of the meter
        self._meter._start(self._server, self._spent, conversations)  # noqa: SLF001
        return lambda tokens: self._meter._end(self._server, self._spent, conversations, tokens)  # noqa: SLF001


_CURRENT: ContextVar[Meter] = ContextVar("meter")


def current_meter() -> Meter | None:
    """Return the meter of the run that this thread works for; None outside a run, or in a process of a cluster."""
    return _CURRENT.get(None)


@contextmanager
def use_meter(meter: Meter) -> Iterator[Meter]:
    """Count the requests of a block, including threads that inherit its context."""
    token = _CURRENT.set(meter)
    try:
        yield meter
    finally:
        _CURRENT.reset(token)
        meter.close()
