"""The second judge of a run costs by prices of its own."""

import pytest

from deployments.cli._support.doctor_checks import check_judge_servers
from flows.config.run_config import RunConfig
from tasks.metering.cost import CostRecord
from tests.flows.findings.robustness.test_second_judge import MOST, Nights, nights, record_of  # noqa: F401 a fixture
from tests.tasks.models.judges.openai.fake_server import FakeServer

pytestmark = [pytest.mark.prefect, pytest.mark.models, pytest.mark.usefixtures("prefect_stub")]


def test_the_second_judge_is_counted_in_the_cost(nights: Nights) -> None:  # noqa: F811
    baseline = nights.run("old")
    with FakeServer() as server:
        server.say = lambda _body: {"content": "yes", "usage": {"prompt_tokens": 90, "completion_tokens": 10}}
        second = {"backend": "server", "server": {"urls": [server.url], "prices": {"output": 1000.0}}}
        run = nights.run("new", baseline=str(baseline.folder), second_judge=second)
        checks = check_judge_servers(RunConfig.model_validate({"second_judge": second}))
        assert [check.name for check in checks if check.name == "second judge"] == ["second judge"]
    cost = run.record.find(CostRecord)
    assert cost is not None
    assert cost.total == pytest.approx(0.01 * record_of(run).questions) == pytest.approx(0.01 * 2 * MOST)
