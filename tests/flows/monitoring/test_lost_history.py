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


def test_a_history_that_is_lost_is_told_and_open_incidents_outlive_it(nights: Nights) -> None:
    nights.deploy["gate"] = None
    recorded: dict[str, Any] = {"config": {"history": str(nights.folder / "history.db")}}
    nights.run(**recorded)
    nights.run(rows=20, **recorded)
    nights.alerts()
    (nights.folder / "history.db").rename(nights.folder / "lost.db")
    nights.history = Catalogue(str(nights.folder / "history.db"))
    nights.run(rows=20, **recorded)
    assert changes_of(nights) == {"support/source: rows": "continuing", "support/history": "opened"}
    assert {each.key for each in nights.history.open_incidents("support")} == {"source: rows", "history"}
    (told,) = (each for each in nights.history.open_incidents("support") if each.key == "history")
    assert f"lacks the run in {nights.folders[0]}, so it was lost, or is another one" in told.sentence
    nights.run(**recorded)
    assert changes_of(nights)["support/source: rows"] == "resolved"
    nights.history.rebuild([nights.folder])
    nights.run(**recorded)
    assert changes_of(nights) == {"support/history": "resolved"}


def changes_of(nights: Nights) -> dict[str, str]:
    """Return what became of each incident in the only alert since the last call."""
    (alert,) = nights.alerts()
    return {each["key"]: each["change"] for each in alert["incidents"]}
