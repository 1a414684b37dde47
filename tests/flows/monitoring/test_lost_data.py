"""Rows, columns and values of the baseline that a monitored run lacks, and data that stay the same."""

from typing import Any

import pytest
from prefect import tags

from flows.monitoring.acceptance import accept_run
from tasks.runs.baselines import EVALUATIONS, Baselines
from tests.flows.monitoring.conftest import Nights

pytestmark = [pytest.mark.prefect]


def test_data_that_stay_the_same_are_told_once_by_scheduled_nights(nights: Nights) -> None:
    nights.deploy["stale_days"] = 1.5
    same, other = ({"samples": {"digests": [digest]}} for digest in ("a", "b"))
    nights.run(stages=same)
    with tags("auto-scheduled"):
        assert nights.run(stages=same)[1].trigger == "schedule"
        assert nights.alerts() == []
        nights.run(stages=same)
        (alert,) = nights.alerts()
        assert alert["outcome"] == "attention"
        assert "the same responses and contexts since 2026-11-16 06:00 UTC, in 3 runs" in alert["text"]
        nights.run(stages=same)
        assert nights.alerts() == []
        nights.run(stages=other)
        (alert,) = nights.alerts()
        assert (alert["outcome"], len(alert["recovered"])) == ("recovered", 1)


@pytest.mark.parametrize(
    ("trigger", "gate"),
    [
        ("auto-scheduled", None),
        ("auto-scheduled", {"coverage": {"paired_at_least": 0.7}}),
        ("by hand", {"absolute": ["faithfulness.mean >= 0.5"], "min_rows": 2}),
    ],
)
def test_rows_of_the_baseline_that_are_missing_are_told_once(nights: Nights, trigger: str, gate: Any) -> None:
    nights.deploy["gate"] = gate
    least = 0.7 if gate is not None and "coverage" in gate else 0.9
    with tags(trigger):
        nights.run()
        verdict, outcome = nights.run(rows=38)
        assert (verdict, outcome.incidents.opened, outcome.kept and outcome.kept.rows) == ("passed", (), (38, 40))
        assert nights.alerts() == []
        assert outcome.message.endswith("; 38 of the 40 rows of the baseline are compared")
        verdict, outcome = nights.run(rows=24)
        assert verdict == ("failed" if least == 0.7 else "inconclusive")
        (alert,) = nights.alerts()
        (sentence,) = alert["worse"][:1]
        assert sentence.startswith(
            "16 of 40 rows of the baseline are missing. Restore this, or accept the run as the new"
        )
        assert not any("share paired" in each for each in alert["worse"]), "not again for each metric"
        assert "nothing is wrong" not in outcome.message
        verdict, outcome = nights.run(rows=21)
        assert (verdict == "passed", nights.alerts()) == (False, [])
        (incident,) = outcome.incidents.continuing
        assert incident.sentence.startswith("19 of 40 rows of the baseline are missing")
        nights.run(rows=6)
        (alert,) = nights.alerts()
        assert alert["worse"][0].startswith("only 6 of 40 rows of the baseline are left: no other row raises an alarm.")


@pytest.mark.simulation
def test_rows_that_are_missing_every_week_are_one_incident(nights: Nights) -> None:
    nights.run()
    verdicts = [nights.run(rows=34 if number % 7 == 0 else 37 if number % 3 == 0 else 40)[0] for number in range(15)]
    assert [number for number, verdict in enumerate(verdicts) if verdict == "inconclusive"] == [0, 7, 14]
    assert [alert["outcome"] for alert in nights.alerts()] == ["attention", "recovered", "attention"]
    for _ in range(5):
        _, outcome = nights.run()
    assert "over after eight days without such a run" in outcome.incidents.continuing[0].sentence
    assert nights.alerts() == []
    while outcome.incidents.is_open:
        _, outcome = nights.run()
    (alert,) = nights.alerts()
    assert (alert["outcome"], len(alert["recovered"]), len(nights.folders)) == ("recovered", 1, 1 + 15 + 8)


def test_run_that_was_accepted_has_lost_nothing(nights: Nights) -> None:
    nights.run()
    nights.run(rows=30)
    accept_run(nights.folders[-1])
    verdict, outcome = nights.run(rows=30)
    assert (verdict, outcome.incidents.is_open) == ("passed", False)


def test_version_that_lost_rows_does_not_become_the_baseline(nights: Nights) -> None:
    nights.deploy |= {"accept": "passed", "gate": None}
    assert [nights.run(rows=rows)[0] for rows in (40, 31, 40)] == ["accepted", "failed", "accepted"]
    store = Baselines(nights.deploy["baselines"], EVALUATIONS)
    assert [each.run_id for each in store.acceptances("support")] == ["night-1", "night-3"]
    failed, over = nights.alerts()
    assert failed["worse"][0].startswith("9 of 40 rows of the baseline are missing")
    assert (len(failed["worse"]), over["outcome"]) == (1, "recovered")


def test_rows_that_are_all_others_are_told_as_not_comparable_only(nights: Nights) -> None:
    nights.run()
    _, outcome = nights.run(first=100)
    assert [incident.key for incident in outcome.incidents.opened] == ["comparison"]


def test_values_of_a_column_that_are_missing_are_told(nights: Nights) -> None:
    nights.run()
    verdict, outcome = nights.run(answer="")
    (incident,) = outcome.incidents.opened
    assert (verdict, incident.key) == ("inconclusive", "source: columns")
    assert incident.sentence.startswith(
        "the column response is empty in all rows, unlike in the baseline. Restore this"
    )


def test_hand_made_run_does_not_end_an_incident_that_it_does_not_look_for(nights: Nights) -> None:
    nights.deploy["stale_days"] = 1.5
    same = {"samples": {"digests": ["a"]}}
    with tags("auto-scheduled"):
        for _ in range(3):
            nights.run(stages=same)
    assert [alert["outcome"] for alert in nights.alerts()] == ["attention"]
    verdict, outcome = nights.run(stages=same)
    assert ([each.key for each in outcome.incidents.continuing], nights.alerts()) == (["source: unchanged"], [])
    assert (verdict, "nothing is wrong" in outcome.message) == ("passed", False)
