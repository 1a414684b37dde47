"""A history that cannot be written for a night, or is lost: what people were told of is ended all the same."""

from typing import Any

import pytest

from metric_core.errors import ConfigError
from tasks.history.alert_log import AlertLog
from tasks.history.catalogue import Catalogue
from tests.flows.monitoring.conftest import Nights

pytestmark = [pytest.mark.prefect]


def test_what_was_told_while_the_history_could_not_be_written_is_ended(
    nights: Nights, monkeypatch: pytest.MonkeyPatch
) -> None:
    nights.deploy["gate"] = None
    nights.run()
    with monkeypatch.context() as patch:
        for step in ("report", "open_incidents", "incidents"):
            patch.setattr(AlertLog, step, _refuse)
        nights.run(rows=20)
    (alert,) = nights.alerts()
    assert [each["key"] for each in alert["incidents"]] == ["support/source: rows"]
    nights.run()
    (alert,) = nights.alerts()
    assert [(each["key"], each["change"]) for each in alert["incidents"]] == [("support/source: rows", "resolved")]
    assert nights.history.open_incidents("support") == []


def _refuse(*_: object, **_more: object) -> Any:
    raise ConfigError("the history cannot be written")


def test_open_incidents_outlive_a_history_that_is_lost(nights: Nights) -> None:
    nights.deploy["gate"] = None
    nights.run()
    nights.run(rows=20)
    nights.alerts()
    (nights.folder / "history.db").rename(nights.folder / "lost.db")
    nights.history = Catalogue(str(nights.folder / "history.db"))
    nights.run(rows=20)
    assert nights.alerts() == []
    assert [each.key for each in nights.history.open_incidents("support")] == ["source: rows"]
    nights.run()
    (alert,) = nights.alerts()
    assert [(each["key"], each["change"]) for each in alert["incidents"]] == [("support/source: rows", "resolved")]
