"""Incidents that stay open when a deployment is removed."""

from pathlib import Path

from deployments.registry.open_incidents import find_open_incidents
from tasks.history.incident import IncidentFinding
from tasks.history.incident_log import IncidentLog


def test_incidents_that_no_run_will_end_are_named(tmp_path: Path) -> None:
    history = str(tmp_path / "history.db")
    IncidentLog(history).open_incident("support", IncidentFinding("source: rows", "source", "rows are missing"))
    (found,) = find_open_incidents({"name": "support", "history": history})
    assert (found.kind, found.name) == ("incident", "support/source: rows")
    assert found.detail == "no run will end it: assay alert close 'support' 'source: rows' --config FILE"
    assert list(find_open_incidents({"source": "answers.jsonl", "history": history})) == []
    (unknown,) = find_open_incidents({"name": "support", "history": "env:NOT_SET_HERE"})
    assert unknown.detail.startswith("it is not known which ones are open: ")
