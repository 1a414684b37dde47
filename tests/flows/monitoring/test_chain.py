"""The chain of a monitored run: what becomes the baseline, what people are told, and what the run folder says."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest
from prefect import tags

from flows.config.run_config import RunConfig
from flows.monitor import monitor, monitor_plan, run_monitor
from flows.monitoring.acceptance import accept_run
from flows.monitoring.missed_runs import MissedRun, MissedRuns
from flows.planning import planner
from flows.planning.planner import plan_run
from metric_core.errors import JudgeError
from tasks.history.recorded_run import RecordedRun
from tasks.runs.baselines import EVALUATIONS, Baselines
from tasks.runs.finished_run import FinishedRun
from tasks.runs.outcome_file import read_outcome
from tasks.runs.run_folder import COMPARISON
from tasks.runs.run_start import start_entry
from tests.flows.monitoring.conftest import GATE, START, Nights

pytestmark = [pytest.mark.prefect]

OTHER_JUDGE = {"backend": "server", "model": "other", "revision": "", "note": "", "language_model": True}
DOWN = -1.0


def test_an_incident_is_told_once_and_its_end_is_told(served_nights: Nights) -> None:
    verdict, first = served_nights.run()
    assert (verdict, first.accepted, first.baseline, first.trigger) == ("accepted", True, None, "manual")
    verdict, second = served_nights.run(0.79)
    assert (verdict, second.accepted, second.gate) == ("passed", False, "passed")
    assert second.baseline is not None
    assert (second.baseline.run_id, second.baseline.version) == ("night-1", "2026-11-16T06:00:00Z")
    assert served_nights.alerts() == []

    verdict, third = served_nights.run(0.2, answer="In Cork.")
    assert (verdict, third.gate) == ("failed", "failed")
    assert [check.outcome for check in third.checks] == ["failed", "failed"]
    assert [(alarm.metric, str(alarm.since)) for alarm in third.alarms] == [
        ("faithfulness", "2026-11-18"),
        ("noise_sensitivity", "2026-11-18"),
    ]
    (alert,) = served_nights.alerts()
    assert (alert["name"], alert["outcome"], alert["index"]) == ("support", "failed", "")
    assert any(line.startswith("faithfulness: worse since Wednesday, 18 November; down") for line in alert["worse"])
    assert alert["baseline"] == "2026-11-16T06:00:00Z"
    assert alert["report"] == Path(alert["folder"], COMPARISON).as_uri()
    assert Path(alert["folder"], COMPARISON).is_file()

    verdict, fourth = served_nights.run(0.21, answer="In Cork.")
    assert (verdict, served_nights.alerts()) == ("failed", [])
    assert {incident.run_id for incident in fourth.incidents.continuing} == {"night-3"}

    verdict, fifth = served_nights.run()  # an alarm stands until two served_nights in a row are better
    assert (verdict, [incident.kind for incident in fifth.incidents.recovered]) == ("recovering", ["gate"] * 2)
    assert "nothing is wrong with the run of" in fifth.message
    assert fifth.message.endswith("another such run ends the alarm")
    assert any(sentence.startswith("faithfulness: from 0.259 to 0.849") for sentence in fifth.since_last)
    verdict, sixth = served_nights.run()
    assert (verdict, [incident.kind for incident in sixth.incidents.recovered]) == ("passed", ["alarm"] * 2)
    gate, alarms = served_nights.alerts()
    assert (gate["outcome"], gate["worse"], len(gate["recovered"])) == ("partly recovered", [], 2)
    assert gate["title"] == "evaluation support has partly recovered: 2 problems are still open"
    assert (alarms["outcome"], len(alarms["recovered"])) == ("recovered", 2)
    recorded = served_nights.history.runs("support")
    assert [run.outcome and run.outcome.gate for run in recorded[2:]] == ["failed", "failed", "passed", "passed"]
    current = Baselines(served_nights.deploy["baselines"], EVALUATIONS).current("support")
    assert current is not None
    assert (current.why, current.run_id) == ("first", "night-1")


def test_limits_of_a_drop_do_not_cross_when_most_of_it_is_regained(nights: Nights) -> None:
    nights.deploy["gate"] = None
    for level in (0.85, 0.85, 0.1, 0.1, 0.1, 0.1):
        _, outcome = nights.run(level)
    for level in (0.7, 0.45, 0.7):
        before, (_, outcome) = outcome, nights.run(level)
        for alarm, last in zip(outcome.alarms, before.alarms, strict=True):
            assert alarm.drop is not None
            assert alarm.drop[0] <= alarm.drop[1], alarm.sentence
            assert not alarm.is_regained or alarm.drop == last.drop, alarm.sentence


def test_rule_that_can_no_longer_be_decided_has_not_recovered(nights: Nights) -> None:
    nights.run()
    nights.run(0.2)
    nights.deploy["gate"] = {**nights.deploy["gate"], "min_rows": 1000}
    verdict, outcome = nights.run()
    kinds = [incident.kind for incident in outcome.incidents.continuing]
    assert (verdict, sorted(kinds), outcome.incidents.recovered) == ("inconclusive", ["alarm"] * 2 + ["gate"] * 2, ())
    assert [alert["outcome"] for alert in nights.alerts()] == ["failed"]


def test_night_that_cannot_be_finished_is_told_once_until_one_is(nights: Nights) -> None:
    nights.run()
    with pytest.raises(JudgeError, match="attempt 2"):
        nights.run(DOWN)
    (alert,) = nights.alerts()
    assert (alert["outcome"], alert["title"]) == ("error", "evaluation support could not be finished")
    assert "the judge is down" in alert["text"]
    assert (monitor(nights.configuration(), return_state=True).name, nights.alerts()) == ("Error", [])
    verdict, outcome = nights.run()
    assert (verdict, [incident.kind for incident in outcome.incidents.recovered]) == ("passed", ["error"])
    (alert,) = nights.alerts()
    assert alert["outcome"] == "recovered"


def test_history_says_what_started_a_run_and_when_it_was_due(nights: Nights) -> None:
    before = datetime.now(UTC)
    nights.run()
    with tags("auto-scheduled"):
        nights.run()
    first, second = nights.history.runs("support")
    assert (first.trigger, second.trigger) == ("manual", "schedule")
    assert first.due is not None
    assert second.due is not None
    assert before <= first.due <= second.due <= datetime.now(UTC)
    assert start_entry() is None


def test_rule_with_another_threshold_has_not_recovered(nights: Nights) -> None:
    nights.run()
    nights.run(0.4)
    nights.alerts()
    nights.deploy["gate"] = {**GATE, "absolute": ["faithfulness.mean >= 0.2"]}
    _, outcome = nights.run(0.4)
    assert (outcome.incidents.recovered, nights.alerts()) == ((), [])
    nights.deploy["gate"] = {**GATE, "absolute": ["faithfulness.mean >= 0.45"]}
    nights.run(0.3)
    (alert,) = nights.alerts()
    assert (alert["recovered"], any("at least 0.45" in each for each in alert["worse"])) == ([], True)


def test_missed_runs_do_not_crowd_out_the_nights_before(nights: Nights, monkeypatch: pytest.MonkeyPatch) -> None:
    """Alarms, the comparison with the run before and the check for unchanged answers look at runs with results."""
    monkeypatch.setattr("flows.monitoring.chain._RUNS_READ", 3)
    monkeypatch.setattr("flows.monitoring.monitored_run_checks._RUNS", 3)
    nights.deploy["stale_days"] = 0.9
    same = {"samples": {"digests": ["a"]}}

    def miss(after: datetime) -> None:
        for hour in range(1, 9):
            due = after + timedelta(hours=hour)
            run = RecordedRun.without_results(f"missed-{due}", "support", due, "missed", "no worker", "schedule")
            nights.history.add(run)

    with tags("auto-scheduled"):
        for level in (0.8, 0.8, 0.2):
            _, outcome = nights.run(level, stages=same)
            miss(START + timedelta(days=len(nights.folders) - 1))
        assert {alarm.metric for alarm in outcome.alarms} == {"faithfulness", "noise_sensitivity"}
        assert any(incident.kind == "source" for incident in outcome.incidents.opened)
        _, outcome = nights.run(0.8, stages=same)
    assert any(sentence.startswith("faithfulness: from") for sentence in outcome.since_last)


def test_run_that_started_late_says_so_and_is_judged_as_any_other(
    nights: Nights, monkeypatch: pytest.MonkeyPatch
) -> None:
    def find(missed: MissedRuns | None) -> None:
        monkeypatch.setattr("flows.monitoring.monitored_run_checks.find_missed_runs", lambda *_: missed)

    find(None)
    with tags("auto-scheduled"):
        nights.run()
        find(MissedRuns(START, (), late=START + timedelta(days=1)))
        verdict, outcome = nights.run()
        assert verdict == "passed"
        assert outcome.message.startswith("nothing is wrong with the run of")
        assert outcome.message.endswith("which stays the baseline; the run of 2026-11-17 06:00 UTC started late")
        (alert,) = nights.alerts()
        assert (alert["outcome"], alert["recovered"]) == ("recovered", ["the run of 2026-11-17 06:00 UTC started late"])
        assert [each["key"] for each in alert["incidents"]] == ["support/missed runs"]
        find(MissedRuns(START, (MissedRun(START + timedelta(days=2)),)))
        nights.run()
        seen: list[list[RecordedRun]] = []
        monkeypatch.setattr("flows.monitoring.monitored_run_checks.find_missed_runs", lambda runs, _: seen.append(runs))
        nights.run()
        assert [run.due for run in seen[0] if run.status == "missed"] == [START + timedelta(days=2)]
    (alert,) = nights.alerts()
    assert alert["recovered"] == ["1 run was missed since 2026-11-16 06:00 UTC: that of 2026-11-18 06:00 UTC"]
    assert [run.status for run in nights.history.runs("support")].count("missed") == 1


def test_metrics_file_of_a_monitored_run_counts_it_and_its_incidents(
    nights: Nights, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = nights.folder / "assay.prom"
    config = nights.configuration().model_copy(update={"metrics_file": str(file)})
    monkeypatch.setattr(nights, "configuration", lambda: config)
    entries: dict[str, Any] = {"bad_row_count": 0, "seconds": 1.0, "failures": [], "stages": {}}
    with tags("auto-scheduled"):
        nights.run(**entries)
        assert 'assay_open_incidents{deployment="",index=""} 0.0' in file.read_text(encoding="utf-8")
        _, outcome = nights.run(0.2, **entries)
    written = file.read_text(encoding="utf-8")
    assert f'assay_open_incidents{{deployment="",index=""}} {len(outcome.incidents.opened)}.0' in written


def test_message_that_nobody_received_is_sent_again(nights: Nights, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK", "http://127.0.0.1:9/nobody")
    monkeypatch.setenv("ASSAY_HOME", str(nights.folder))  # where the alert is written that nobody received
    nights.run()
    file = nights.deploy["alerts"]
    nights.deploy["alerts"] = {"webhook": "env:HOOK"}
    nights.run(0.2)
    assert [alert["outcome"] for alert in nights.alerts()] == ["failed"]
    nights.deploy["alerts"] = file
    nights.run(0.2)
    assert [alert["outcome"] for alert in nights.alerts()] == ["failed"]


def test_history_that_cannot_be_used_costs_no_alert(nights: Nights, monkeypatch: pytest.MonkeyPatch) -> None:
    nights.run()
    (nights.folder / "other").mkdir()
    broken = nights.configuration().model_copy(update={"history": str(nights.folder / "other")})
    monkeypatch.setattr(nights, "configuration", lambda: broken)
    assert [nights.run(0.2)[0], nights.run(0.2)[0]] == ["failed", "failed"]
    assert [alert["outcome"] for alert in nights.alerts()] == ["failed"]
    nights.run()
    (alert,) = nights.alerts()
    assert alert["outcome"] == "partly recovered"
    assert [each["kind"] for each in alert["incidents"] if each["change"] == "resolved"] == ["gate"] * 2
    assert [each["kind"] for each in alert["incidents"] if each["change"] != "resolved"] == ["record", "alarm", "alarm"]


def test_run_that_is_not_like_for_like_says_so_and_can_be_accepted(nights: Nights) -> None:
    nights.run()
    verdict, outcome = nights.run(judge=OTHER_JUDGE)
    assert (verdict, outcome.gate) == ("inconclusive", "inconclusive")
    assert [(check.metric, check.outcome) for check in outcome.checks] == [("faithfulness", "passed")]
    assert any("judge" in change for change in outcome.changes)
    (alert,) = nights.alerts()
    assert alert["outcome"] == "inconclusive"
    assert "cannot be compared with its baseline like for like (judge backend" in alert["text"]
    assert (nights.folders[-1] / COMPARISON).is_file()
    assert (nights.run(judge=OTHER_JUDGE)[0], nights.alerts()) == ("inconclusive", [])

    done = accept_run(nights.folders[-1])
    assert done.warnings == ()
    assert done.earlier is not None
    assert (done.baseline.why, done.earlier.why) == ("manual", "first")
    accepted = read_outcome(nights.folders[-1])
    assert accepted is not None
    assert accepted.accepted
    verdict, outcome = nights.run(0.79, judge=OTHER_JUDGE)
    assert outcome.changes == ()
    assert (verdict, [incident.kind for incident in outcome.incidents.recovered]) == ("passed", ["comparison"])
    assert [alert["outcome"] for alert in nights.alerts()] == ["recovered"]


def test_run_that_nobody_monitored_can_be_accepted(nights: Nights) -> None:
    nights.run()
    folder = nights.evaluate(nights.configuration(), *[None, None])  # type: ignore[arg-type]
    assert read_outcome(folder) is None
    assert accept_run(folder, nights.deploy["baselines"]).baseline.run_id == "night-2"
    outcome = nights.run()[1]
    assert outcome.baseline is not None
    assert outcome.baseline.run_id == "night-2"


def test_baseline_whose_folder_is_gone_is_an_incident_and_no_crash(nights: Nights) -> None:
    nights.run()
    nights.folders[0].rename(nights.folder / "gone")
    verdict, outcome = nights.run()
    assert (verdict, outcome.gate) == ("inconclusive", "inconclusive")
    (alert,) = nights.alerts()
    assert "assay accept RUN" in alert["text"]


def test_baseline_whose_tables_are_gone_is_an_incident_and_no_crash(nights: Nights) -> None:
    nights.run()
    nights.run(rows=30)
    rmtree(nights.folders[0] / "stages")
    verdict, outcome = nights.run(rows=30)
    assert (verdict, outcome.kept) == ("inconclusive", None)
    assert nights.baselines == [None, nights.folders[0], None]
    (incident,) = outcome.incidents.opened
    assert incident.key == "comparison"
    assert "stages/samples.parquet. Restore it, or accept another run as the baseline" in incident.sentence
    assert [incident.key for incident in outcome.incidents.continuing] == ["source: rows"], "nothing is known of it"


def test_each_run_that_passes_is_accepted_if_so_configured_and_an_older_one_manual(nights: Nights) -> None:
    nights.deploy |= {"accept": "passed", "gate": None}
    assert [nights.run(level)[0] for level in (0.8, 0.79, 0.2)] == ["accepted", "accepted", "failed"]
    store = Baselines(nights.deploy["baselines"], EVALUATIONS)
    assert [each.why for each in store.acceptances("support")] == ["first", "passed"]
    done = accept_run(nights.folders[0])
    current = store.current("support")
    assert current is not None
    assert (current.run_id, current.why, done.earlier and done.earlier.run_id) == ("night-1", "manual", "night-2")
    assert nights.run()[0] == "accepted"


def test_first_run_is_checked_by_the_rules_that_need_no_baseline(nights: Nights) -> None:
    verdict, outcome = nights.run(0.2)
    assert (verdict, outcome.gate, outcome.accepted) == ("failed", "failed", True)
    (alert,) = nights.alerts()
    assert alert["baseline"] is None


def test_rows_without_a_common_name_are_an_incident(nights: Nights) -> None:
    nights.deploy["gate"] = None
    assert [nights.run(first=first)[0] for first in (0, 100)] == ["accepted", "inconclusive"]
    (alert,) = nights.alerts()
    assert "no row in common" in alert["text"]


def test_error_of_the_flow_is_raised(nights: Nights) -> None:
    nights.deploy["gate"] = {"absolute": ["faithfulnes.mean >= 0.5"]}
    with pytest.raises(Exception, match="faithfulnes"):
        run_monitor(nights.configuration())
    assert [alert["outcome"] for alert in nights.alerts()] == ["error"]


@pytest.mark.usefixtures("prefect_stub")
def test_a_run_is_evaluated_by_the_plan_that_was_checked_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = tmp_path / "answers.jsonl"
    rows.write_text('{"response": "Rome", "reference": "Rome"}\n', encoding="utf-8")
    stores = {name: str(tmp_path / name) for name in ("tables", "cache", "history")}
    options = {"source": str(rows), "metrics": "string_similarity", "deploy": {"baselines": "accepted"}, **stores}
    config = RunConfig.model_validate(options)
    plan = plan_run(config)
    monkeypatch.setattr(planner, "run_checks", lambda plan: pytest.fail(f"checked again: {plan}"))
    done = [monitor_plan(plan) for _ in range(2)]
    assert [each.verdict for each in done] == ["accepted", "passed"]
    manifests = [FinishedRun(str(each.folder)).record.to_json() for each in done]
    assert [manifest["config"]["baseline"] for manifest in manifests] == [None, str(done[0].folder)]
    assert {manifest["config"]["name"] for manifest in manifests} == {"answers"}
