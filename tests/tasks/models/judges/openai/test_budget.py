"""Tests that a budget stops the requests of a judge, and that what is in flight then is kept."""

import pytest

from metric_core.errors import BudgetSpentError
from metric_core.prompts.judge_questions import ask_verdict
from tasks.metering.meter import Meter, use_meter
from tasks.models.judges.panel import PanelJudge
from tasks.options.cost_options import Budget, Prices
from tests.tasks.models.judges.openai.conftest import OpenJudge, Serve

QUESTIONS = [ask_verdict(f"claim {i}", f"context {i % 10}") for i in range(60)]
USAGE = {"prompt_tokens": 100, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 40}}


def test_requests_are_counted_with_their_tokens_per_server(serve: Serve, open_judge: OpenJudge) -> None:
    server = serve()
    server.shape = lambda reply: {**reply, "usage": USAGE}
    judge = open_judge(server, concurrency=8)
    meter = Meter(Prices(prompt=1.0, cached_prompt=0.5, output=2.0))
    judge.choose(QUESTIONS[:5])  # outside the run
    with use_meter(meter):
        judge.choose(QUESTIONS)
    (record,) = meter.records()
    assert (record.name, record.slots, record.tells_cached) == (server.url, 8, True)
    assert (record.usage.requests, record.usage.prompt_tokens, record.usage.output_tokens) == (60, 6000, 600)
    assert 0 < record.in_flight <= 8
    money = meter.money
    assert money is not None
    assert money.total == pytest.approx(60 * (60 * 1.0 + 40 * 0.5 + 10 * 2.0) / 1e6)


def test_each_judge_of_a_panel_costs_its_own_prices(serve: Serve, open_judge: OpenJudge) -> None:
    servers = [serve(), serve()]
    for server in servers:
        server.shape = lambda reply: {**reply, "usage": USAGE}
    own = Prices(output=50.0, currency="EUR")
    panel = PanelJudge([open_judge(servers[0]), open_judge(servers[1], prices=own)])
    with use_meter(Meter(Prices(prompt=10.0, currency="EUR"), Budget(money=1.0))) as meter:
        panel.choose(QUESTIONS[:20])
    name = panel.members[1].identity.model
    assert {judge: money.total for judge, money in meter.money_by_judge.items()} == {"": 0.02, name: 0.01}
    assert meter.money is not None
    assert meter.money.total == 0.03
    count = sum(len(server.asked) for server in servers)
    with use_meter(Meter(budget=Budget(money=0.002))), pytest.raises(BudgetSpentError, match=r"0\.002 EUR is spent"):
        panel.choose(QUESTIONS[20:])  # 5 EUR in a thousand replies of the second, and the first costs nothing
    assert len(servers[1].asked) - 20 == 4
    assert sum(len(server.asked) for server in servers) > count


@pytest.mark.parametrize("concurrency", [1, 64])
def test_a_spent_budget_stops_and_loses_no_answer(serve: Serve, open_judge: OpenJudge, concurrency: int) -> None:
    server = serve()
    server.shape = lambda reply: {**reply, "usage": USAGE}
    server.delay = 0.02
    judge = open_judge(server, concurrency=concurrency)
    received: list[int] = []
    budget = Budget(tokens=2000)  # 18.2 answers
    with (
        use_meter(Meter(budget=budget)),
        pytest.raises(BudgetSpentError, match=r"budget of 2,000 tokens is spent: 1,9?00 prompt tokens and 190 output"),
    ):
        judge.choose(QUESTIONS, lambda position, _: received.append(position))
    assert len(server.asked) == len(received) == 19


def test_a_budget_that_suffices_stops_nothing(serve: Serve, open_judge: OpenJudge) -> None:
    server = serve()
    server.shape = lambda reply: {**reply, "usage": USAGE}
    judge = open_judge(server, concurrency=64)
    with use_meter(Meter(Prices(prompt=10.0), Budget(tokens=60 * 110 + 1, money=0.0601))) as meter:
        assert len(judge.choose(QUESTIONS)) == 60
    assert meter.usage.requests == 60


def test_no_request_is_sent_once_the_budget_is_spent(serve: Serve, open_judge: OpenJudge) -> None:
    server = serve()
    server.shape = lambda reply: {**reply, "usage": USAGE}
    judge = open_judge(server)
    with use_meter(Meter(Prices(output=100.0), Budget(money=0.001))):
        judge.choose(QUESTIONS[:1])
        with pytest.raises(BudgetSpentError, match=r"0\.001 USD is spent: 0\.001 USD for 100 prompt tokens"):
            judge.choose(QUESTIONS[1:])
    assert len(server.asked) == 1


def test_cached_tokens_that_the_server_does_not_tell_are_estimated(serve: Serve, open_judge: OpenJudge) -> None:
    server = serve()
    server.shape = lambda reply: {**reply, "usage": {"prompt_tokens": 100, "completion_tokens": 1}}
    judge = open_judge(server)
    passage = "The hall opens at nine. " * 200
    with use_meter(Meter()) as meter:
        judge.choose([ask_verdict(f"claim {i}", passage) for i in range(10)])
    (record,) = meter.records()
    assert (record.tells_cached, record.usage.cached_tokens) == (False, 0)
    assert 800 < record.estimated_cached <= 900  # nine of ten find the passage
