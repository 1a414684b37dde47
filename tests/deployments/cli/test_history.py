"""The verb `history`: text, JSON, pages, and recording the runs of whole folders."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tasks.history.catalogue import Catalogue
from tasks.history.incident import IncidentFinding
from tasks.history.recorded_run import RecordedRun
from tests.deployments.cli.conftest import Outcome
from tests.tasks.history.recorded import nights
from tests.tasks.history.run_folders import JUDGE, START, outcome_of, write_run

Assay = Callable[..., Outcome]


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with three nights: one passed, one with another judge failed the gate, one died."""
    monkeypatch.setenv("ASSAY_HOME", str(tmp_path / "home"))
    root = tmp_path / "runs"
    write_run(root / "first", 0, mean=0.8, outcome=outcome_of(None, gate="passed", accepted=True))
    alarms = [{"metric": "faithfulness", "sentence": "faithfulness is worse since Monday, 2 March"}]
    judge = JUDGE | {"model": "judge-70b"}
    worse = outcome_of(0, gate="failed", alarms=alarms, message="faithfulness.mean >= 0.7 failed: 0.6")
    write_run(root / "second", 1, mean=0.6, judge=judge, outcome=worse)
    write_run(root / "third", 2, status="failed", reason="the judge cannot be reached")
    return root


def test_an_empty_history_says_how_it_is_filled(assay: Assay, runs: Path) -> None:
    del runs
    outcome = assay("history")
    assert (outcome.code, "assay history --rebuild runs" in outcome.err) == (2, True)


def test_entry_of_a_run_is_removed_and_one_that_is_not_there_is_named(assay: Assay, runs: Path) -> None:
    assay("history", "--rebuild", str(runs))
    (first, *others) = [run.run_id for run in Catalogue().runs()]
    assert assay("history", "--forget", first).out == f"removed {first} from the history\n"
    assert [run.run_id for run in Catalogue().runs()] == others
    again = assay("history", "--forget", first)
    assert (again.code, f"has no run '{first}'" in again.err) == (2, True)


def test_a_rebuilt_history_is_shown(assay: Assay, runs: Path) -> None:
    (runs / "broken").mkdir()
    (runs / "broken" / "run.json").write_text("{", encoding="utf-8")
    done = assay("history", "--rebuild", str(runs))
    assert done.code == 0
    assert done.out.startswith("recorded 3 runs, skipped 1: sqlite:///")
    assert f"skipped {runs / 'broken'}: " in done.err
    finding = IncidentFinding("gate:mean", "gate", "faithfulness is 0.6", START + timedelta(days=1), "run-1")
    Catalogue().open_incident("nightly", finding)
    shown = assay("history").out
    lines = [line.split() for line in shown.splitlines()]
    assert lines[:2] == [["nightly"], ["started", "outcome", "rows", "failed", "seconds"]]
    assert lines[2] == ["2026-03-01", "06:00", "passed,", "accepted", "2", "5.0", "%", "12"]
    assert lines[3] == ["2026-03-02", "06:00", "gate", "failed,", "alarm", "2", "5.0", "%", "12"]
    assert lines[4] == ["2026-03-03", "06:00", "did", "not", "finish", "-", "-", "12"]
    assert lines[6] == ["mean", "of", "03-01", "06:00", "03-02", "06:00"]
    assert lines[7] == ["faithfulness", "0.800", "0.600"]
    assert "2026-03-02 06:00  index: handbook 1.0 -> handbook 1.1; judge: judge-8b r1 -> judge-70b r1" in shown
    assert "2026-03-03 06:00  did not finish: the judge cannot be reached" in shown
    assert "open since 2026-03-02 06:00 UTC: faithfulness is 0.6" in shown
    assert assay("history", "--last", "1").out.count("06:00") == 3  # the run, its reason, and the incident


def test_runs_without_results_are_shown_with_their_reasons(assay: Assay, runs: Path) -> None:
    today = datetime.now(UTC).replace(microsecond=0)
    due = (today - timedelta(days=3)).isoformat()
    write_run(runs / "last", 3, created=due, start={"trigger": "schedule", "due": due})
    assert assay("history", "--rebuild", str(runs)).code == 0
    add = RecordedRun.without_results
    Catalogue().add(add("early", "nightly", today - timedelta(days=2), "failed", "no file rows.jsonl", "schedule"))
    Catalogue().add(add("lost", "nightly", today - timedelta(days=1), "missed", "no worker was there", "schedule"))
    shown = assay("history").out
    assert [line.split()[2:] for line in shown.splitlines()[6:8]] == [
        ["did", "not", "start", "-", "-", "-"],
        ["missed", "-", "-", "-"],
    ]
    assert f"{today - timedelta(days=2):%Y-%m-%d %H:%M}  did not start: no file rows.jsonl" in shown
    assert f"{today - timedelta(days=1):%Y-%m-%d %H:%M}  missed: no worker was there" in shown
    assert "last 7 days: 1 of 3 scheduled runs have a result (33.3 %), 1 failed, 1 missed" in shown
    [nightly] = json.loads(assay("history", "--json").out)["evaluations"]
    assert [(run["status"], run["trigger"]) for run in nightly["runs"][3:]] == [
        ("completed", "schedule"),
        ("failed", "schedule"),
        ("missed", "schedule"),
    ]
    assert nightly["runs"][-1]["due"] == (today - timedelta(days=1)).isoformat()
    week = {"days": 7, "finished": 1, "failed": 1, "missed": 1, "due": 3, "availability": 1 / 3}
    assert nightly["availability"][0] == week
    assert assay("history", "--last", "1").out.splitlines()[2].split()[2] == "missed"


def test_several_evaluations_are_listed(assay: Assay, runs: Path) -> None:
    write_run(runs / "weekly", 5, name="weekly")
    assert assay("history", "--rebuild", str(runs)).code == 0
    shown = assay("history").out
    assert [line.split()[0] for line in shown.splitlines()] == ["evaluation", "weekly", "nightly", "`assay"]
    assert "2026-03-06" in assay("history", "weekly").out
    outcome = assay("history", "nightli")
    assert (outcome.code, "no evaluation 'nightli', but nightly" in outcome.err) == (2, True)
    outcome = assay("history", "--page", str(runs / "page.html"))
    assert (outcome.code, "name one of weekly, nightly" in outcome.err) == (2, True)


def test_json_has_everything(assay: Assay, runs: Path) -> None:
    told = json.loads(assay("history", "--rebuild", str(runs), "--json").out)
    assert told == {"recorded": 3, "skipped": []}
    [nightly] = json.loads(assay("history", "--json").out)["evaluations"]
    assert (nightly["name"], nightly["incidents"]) == ("nightly", [])
    first, second, third = nightly["runs"]
    assert first["metrics"][0]["mean"] == 0.8
    assert first["outcome"]["accepted"] is True
    assert [change["what"] for change in second["changes"]] == ["index", "judge"]
    assert third["reason"] == "the judge cannot be reached"
    assert third["created"] == "2026-03-03T06:00:00+00:00"


def test_metrics_can_be_chosen(assay: Assay, runs: Path) -> None:
    assay("history", "--rebuild", str(runs))
    assert "faithfulness" in assay("history", "--metrics", "faithfulness").out
    outcome = assay("history", "--metrics", "faithfulnes")
    assert (outcome.code, "'faithfulnes', but of faithfulness" in outcome.err) == (2, True)


def test_eleven_metrics_fit_a_terminal_of_80_columns(
    assay: Assay, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ASSAY_HOME", str(tmp_path / "home"))
    monkeypatch.setattr("deployments.cli.history.stdout._width", 80)
    names = tuple(f"context_entity_recall_{number:02}" for number in range(11))
    for run in nights(9, names):
        Catalogue().add(run)
    shown = assay("history").out.splitlines()
    assert max(len(line.rstrip()) for line in shown if "->" not in line) <= 80
    assert [line.split()[0] for line in shown if line.startswith("context_")] == [*names]


def test_a_page_links_to_the_reports_beside_it(assay: Assay, runs: Path) -> None:
    (runs / "first" / "report.html").write_text("a report", encoding="utf-8")
    (runs / "second" / "comparison.html").write_text("rows", encoding="utf-8")
    page = runs / "pages" / "history.html"
    done = assay("history", "nightly", "--rebuild", str(runs), "--page", str(page))
    assert done.out.splitlines()[-1] == str(page)
    assert '"report":["../first/report.html",null,null]' in page.read_text(encoding="utf-8")
    assert '"compared":{"1":"../second/comparison.html"}' in page.read_text(encoding="utf-8")
    assay("history", "nightly", "--page", str(page), "--link", "https://reports.example/{name}")
    assert "https://reports.example/second/report.html" in page.read_text(encoding="utf-8")
    write_run(runs / "first", 9)  # a later run has written the folder again
    assay("history", "nightly", "--page", str(page))
    assert '"report":[null,null,null]' in page.read_text(encoding="utf-8")


def test_options_that_exclude_each_other_are_refused(assay: Assay, runs: Path) -> None:
    assay("history", "--rebuild", str(runs))
    for options in (("--open",), ("--serve", "--json"), ("--serve", "--page", "x.html")):
        assert assay("history", *options).code == 2


def test_the_history_of_a_configuration_is_shown(assay: Assay, runs: Path, tmp_path: Path) -> None:
    config = tmp_path / "assay.toml"
    config.write_text('history = "mine.db"', encoding="utf-8")
    assay("history", "--rebuild", str(runs), "--config", str(config))
    assert (tmp_path / "mine.db").exists()
    assert "2026-03-01" in assay("history", "--config", str(config)).out
    assert assay("history").code == 2
    outcome = assay("history", "--history", "postgresql://me:hunter2@host/history")
    assert (outcome.code, "env:NAME" in outcome.err, "hunter2" in outcome.err) == (2, True, False)


def test_old_entries_are_pruned(assay: Assay, runs: Path, tmp_path: Path) -> None:
    stores = ("--tables", str(tmp_path / "tables"), "--cache", str(tmp_path / "answers.db"))
    assay("history", "--rebuild", str(runs))
    would = assay("prune", *stores, "--history-keep-last", "1")
    assert "would remove 1 runs from the history; their folders stay" in would.out  # the accepted run stays
    assert json.loads(assay("prune", *stores, "--history-keep-for", "1d", "--json").out)["recorded_runs"] == 2
    assay("prune", *stores, "--history-keep-last", "1", "--yes")
    assert [run.run_id for run in Catalogue().runs()] == ["run-0", "run-2"]
