"""Incidents: opened once, found again, closed once."""

import threading
from datetime import timedelta

from tasks.history.catalogue import Catalogue
from tasks.history.incident import Incident, IncidentFinding
from tests.tasks.history.run_folders import START
from tests.waiting import DEAD_SECONDS

GATE = IncidentFinding("gate:mean", "gate", "faithfulness is 0.61", START, "run-1", {"value": 0.61})


def test_an_incident_is_new_once(catalogue: Catalogue) -> None:
    first = catalogue.open_incident("nightly", GATE)
    assert (first.is_new, first.times, first.opened, first.run_id) == (True, 1, START, "run-1")
    found = START + timedelta(days=1)
    again = catalogue.open_incident("nightly", IncidentFinding("gate:mean", "gate", "it is 0.58", found, "run-2"))
    assert again.incident_id == first.incident_id
    assert (again.is_new, again.times, again.sentence, again.run_id) == (False, 2, "it is 0.58", "run-1")
    assert (again.opened, again.seen) == (START, found)
    assert catalogue.open_incidents("nightly") == [again]
    assert catalogue.open_incidents("weekly") == []


def test_an_incident_is_closed_once_and_may_come_back(catalogue: Catalogue) -> None:
    catalogue.open_incident("nightly", GATE)
    catalogue.open_incident("weekly", GATE)
    over = START + timedelta(days=2)
    closed = catalogue.close_incident("nightly", "gate:mean", at=over, run_id="run-3")
    assert closed is not None
    assert (closed.closed, closed.closing_run_id) == (over, "run-3")
    assert catalogue.close_incident("nightly", "gate:mean") is None
    assert catalogue.open_incidents("nightly") == []
    assert len(catalogue.open_incidents("weekly")) == 1
    assert catalogue.open_incident("nightly", GATE).is_new
    assert catalogue.close_incident("nightly", "gate:mean") is not None
    assert len(catalogue.incidents("nightly")) == 2
    assert len(catalogue.incidents()) == 3


def test_of_several_writers_one_opens_and_one_closes(url: str) -> None:
    opened: list[Incident] = []
    closed: list[Incident | None] = []
    barrier = threading.Barrier(4)

    def work() -> None:
        catalogue = Catalogue(url)
        barrier.wait(DEAD_SECONDS)
        opened.append(catalogue.open_incident("nightly", GATE))
        barrier.wait(DEAD_SECONDS)
        closed.append(catalogue.close_incident("nightly", "gate:mean"))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEAD_SECONDS)
    assert [incident.times for incident in sorted(opened, key=lambda each: each.times)] == [1, 2, 3, 4]
    assert len({incident.incident_id for incident in opened}) == 1
    assert sum(incident is not None for incident in closed) == 1
