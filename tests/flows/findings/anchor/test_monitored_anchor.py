"""A monitored run says what the anchor shows of its judge."""

from typing import Any

import pytest

from tests.flows.monitoring.conftest import Nights, nights  # noqa: F401 a fixture
from tests.flows.monitoring.test_chain import OTHER_JUDGE

pytestmark = [pytest.mark.prefect]


def test_judge_that_collapsed_is_named_before_what_follows_from_it(nights: Nights) -> None:  # noqa: F811
    def anchor(mean: float) -> dict[str, Any]:
        return {"digest": "d", "metrics": {"faithfulness": {"mean": mean, "scored": 60}}, "agreement": {}}

    nights.run(anchor=anchor(0.9))
    verdict, outcome = nights.run(judge=OTHER_JUDGE, anchor=anchor(1.0))
    assert verdict == "inconclusive"
    assert [each.kind for each in outcome.incidents.opened][:2] == ["judge", "comparison"]
    assert outcome.incidents.opened[0].sentence == (
        "the judge gives all 60 rows of the anchor the same faithfulness, 1, where their mean was 0.900: its scores "
        "say nothing about the system. Look at the server of the judge; do not accept this run"
    )


def test_first_run_whose_anchor_has_no_scores_is_not_the_baseline(nights: Nights) -> None:  # noqa: F811
    verdict, outcome = nights.run(anchor={"reason": "no space left"})
    assert (verdict, outcome.accepted, [each.kind for each in outcome.incidents.opened]) == (
        "inconclusive",
        False,
        ["record"],
    )
    assert "no space left" in outcome.incidents.opened[0].sentence
    assert nights.run()[0] == "accepted"
    assert [alert["outcome"] for alert in nights.alerts()] == ["attention", "recovered"]
