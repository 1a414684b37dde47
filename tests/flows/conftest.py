"""Runs of flows that lose no time with recipients of alerts that cannot be reached."""

import pytest

from flows.alerting import delivery
from tasks.runtime.retry import Backoff


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery, "BACKOFF", Backoff(first=0.001, longest=0.001))
