"""Services with incidents over some nights: they have the same incidents open as the history."""

from collections.abc import Iterator

import pytest

from metric_core.errors import JudgeError
from tasks.history.incident_log import IncidentLog
from tests.flows.monitoring.conftest import GATE, Nights
from tests.service_receivers import Services, keys_at_services

pytestmark = [pytest.mark.prefect]

DOWN = -1.0


@pytest.fixture
def services(nights: Nights, monkeypatch: pytest.MonkeyPatch) -> Iterator[Services]:
    with Services() as running:
        for name, secret in running.secrets.items():
            monkeypatch.setenv(name, secret)
        nights.deploy["alerts"] = running.settings
        yield running


def test_services_have_the_incidents_of_the_history(nights: Nights, services: Services) -> None:
    counts = []
    for level in (0.8, 0.2, 0.2, DOWN, DOWN, 0.2, 0.8, 0.8, 0.8):
        if level == DOWN:
            with pytest.raises(JudgeError):
                nights.run(level)
        else:
            nights.run(level)
        found = IncidentLog(str(nights.folder / "history.db")).open_incidents("support")
        assert services.open() == keys_at_services(*(f"support/{each.key}" for each in found))
        counts.append(len(found))
    assert counts == [0, 4, 4, 5, 5, 4, 2, 0, 0]


def test_incident_that_is_replaced_is_over_at_services_and_no_news_for_people(
    nights: Nights, services: Services
) -> None:
    nights.deploy["alerts"] = {**services.settings, "file": str(nights.folder / "alerts.jsonl")}
    history = IncidentLog(str(nights.folder / "history.db"))
    nights.run()
    nights.run(0.4)
    before = [each.key for each in history.open_incidents("support")]
    assert len(nights.alerts()) == 1
    nights.deploy["gate"] = {**GATE, "absolute": ["faithfulness.mean >= 0.2"]}
    nights.run(0.4)
    after = [each.key for each in history.open_incidents("support")]
    assert [key for key in before if key not in after] == [key for key in before if "at least 0.5" in key] != []
    assert services.open() == keys_at_services(*(f"support/{key}" for key in after))
    assert nights.alerts() == []
