"""Each judge of a run costs by prices of its own."""

from typing import Any

import pytest

from flows.dry_run.dry_run import make_dry_run
from flows.dry_run.forecast import make_forecast
from flows.planning.planner import draft_plan
from tests.flows.test_asked import ROWS, Bench, bench, kind_of  # noqa: F401 a fixture
from tests.tasks.models.judges.openai.fake_server import FakeServer

pytestmark = [pytest.mark.prefect, pytest.mark.models, pytest.mark.usefixtures("prefect_stub")]


def test_each_judge_costs_by_its_own_prices(bench: Bench) -> None:  # noqa: F811
    with FakeServer(models=["verifier"]) as verifier:
        served = {"backend": "server", "server": {"urls": [bench.judge.url]}}
        bench.run(judge={**served, "verdicts": verifier.url})
        for server in (bench.judge, verifier):
            server.shape = lambda reply: {**reply, "usage": {"prompt_tokens": 100, "completion_tokens": 10}}
        dear = {"urls": [verifier.url], "prices": {"output": 1000.0}}
        judge = {**served, "verdicts": {"backend": "server", "server": dear}}
        routed: dict[str, Any] = {"judge": judge, "prices": {"prompt": 1.0}}
        config = bench.config(**routed)
        assert make_dry_run(draft_plan(config)).tally.asked == 0  # prices are no part of a key
        rows = [{**ROWS[0], "response": "Hall 7 does."}, *ROWS[1:]]
        config = bench.config(rows, **routed)
        forecast = make_forecast(draft_plan(config), make_dry_run(draft_plan(config)))
        assert forecast.by_judge["verifier"].total == pytest.approx(0.001)  # one sentence stands in for the claims
        assert forecast.by_judge[""].total > 0
        bench.run(rows, **routed)
        cost = bench.manifest["cost"]
        totals = {each["judge"]: each["total"] for each in cost["judges"]}
        assert totals == pytest.approx({"": 0.0001 * sum(bench.asked.values()), "verifier": 0.01 * 2})
        assert cost["total"] == pytest.approx(sum(totals.values()))
