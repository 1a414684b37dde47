"""A store of baselines that is gone: the next run is not taken for the first, and does not become the baseline."""

from shutil import rmtree

import pytest

from flows.monitoring import chain
from flows.monitoring.acceptance import accept_run
from tasks.runs.baselines import EVALUATIONS, Baselines
from tests.flows.monitoring.conftest import Nights

pytestmark = [pytest.mark.prefect]


def test_run_without_a_baseline_that_the_history_knows_does_not_become_it(nights: Nights) -> None:
    nights.deploy["gate"] = None
    for _ in range(3):
        nights.run()
    rmtree(nights.deploy["baselines"])
    verdict, outcome = nights.run(0.1)
    assert (verdict, outcome.accepted) == ("inconclusive", False)
    (alert,) = nights.alerts()
    assert alert["title"] == "evaluation support is inconclusive"
    (sentence,) = alert["worse"]
    assert sentence == (
        f"there is no baseline in {nights.deploy['baselines']}, but the history has 3 earlier runs, and that of "
        "2026-11-16 06:00 UTC was accepted: the store is lost, or is another one. This run does not become the "
        f"baseline. Restore the store, or accept a run: assay accept {nights.folders[0]}"
    )
    assert nights.run(0.1)[0] == "inconclusive"
    assert nights.alerts() == []
    accept_run(nights.folders[0])
    verdict, outcome = nights.run(0.1)
    assert (verdict, outcome.baseline and outcome.baseline.run_id) == ("worse", "night-1")
    (alert,) = nights.alerts()
    assert [each.partition(" ")[0] for each in alert["recovered"]] == ["there"]


def test_first_run_beside_another_does_not_take_its_place(nights: Nights, monkeypatch: pytest.MonkeyPatch) -> None:
    nights.run()
    monkeypatch.setattr(chain, "_read_baseline", lambda *_: None)  # the other run was not accepted yet
    monkeypatch.setattr(chain, "find_lost_baseline", lambda *_: None)
    verdict, outcome = nights.run()
    assert (verdict, outcome.accepted) == ("inconclusive", False)
    assert outcome.message.endswith("another first run was accepted meanwhile")
    current = Baselines(nights.deploy["baselines"], EVALUATIONS).current("support")
    assert (current and current.run_id) == "night-1"
