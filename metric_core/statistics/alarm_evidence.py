"""The evidence behind alarms, night by night, which `metric_core.statistics.alarms` compares with its threshold."""

import numpy as np

from metric_core.statistics.alarms import NIGHTS_READ, AlarmSettings, PanelEvidence, shares_of
from metric_core.statistics.resampling import Floats
from metric_core.statistics.run_panel import Panel


def evidence_after_each(panel: Panel, number: int, settings: AlarmSettings | None = None) -> Floats:
    """Return the evidence that streams became worse, after each night: it raises an alarm at 1 / error.

    Args:
        panel: Nights since the accepted baseline.
        number: Number of the last night's run among the runs of its calendar year, from 1.
        settings: Settings of the alarms; None means the defaults.

    Returns:
        Evidence, as nights x streams. Nights of an earlier year have none, since a year begins without.

    >>> from datetime import datetime
    >>> rows = {f"row {i}": -1.0 if i < 10 else 0.0 for i in range(200)}
    >>> nights = {datetime(2025, 11, day): {"faithfulness": rows} for day in (17, 18, 19)}
    >>> evidence_after_each(Panel.from_rows(nights), number=317).round(1).tolist()
    [[1.6], [3.2], [4.8]]
    """
    settings = settings or AlarmSettings()
    shares = dict(zip(panel.streams, shares_of(panel.streams), strict=True))
    last = len(panel.nights) - 1
    found = []
    for night in range(last + 1):
        until = panel.select(range(night + 1)).recent(NIGHTS_READ)
        found.append(PanelEvidence(until, number - (last - night), settings, settings.error, shares).after_last())
    return np.array(found)
