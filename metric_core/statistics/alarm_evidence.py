"""Compute the evidence after each run that `metric_core.statistics.alarms` compares with its threshold."""

import numpy as np

from metric_core.statistics.alarms import RUNS_READ, AlarmSettings, PanelEvidence, shares_of
from metric_core.statistics.resampling import Floats
from metric_core.statistics.run_panel import Panel


def evidence_after_each(panel: Panel, number: int, settings: AlarmSettings | None = None) -> Floats:
    """Return the evidence that streams became worse, after each run: it raises an alarm at 1 / error.

    Args:
        panel: Runs since the accepted baseline.
        number: Number of the last run among the runs of its calendar year, from 1.
        settings: Settings of the alarms; None means the defaults.

    Returns:
        Evidence, as runs x streams; 0 for runs of an earlier calendar year, because each year begins without evidence.

    >>> from datetime import datetime
    >>> days = tuple(datetime(2025, 11, day) for day in (17, 18, 19))
    >>> improvements = np.tile(np.where(np.arange(200) < 10, -1.0, 0.0)[:, None], (3, 1, 1))
    >>> panel = Panel(("faithfulness",), {"faithfulness": 1.0}, days, improvements)
    >>> evidence_after_each(panel, number=317).round(1).tolist()
    [[1.9], [3.9], [5.8]]
    """
    settings = settings or AlarmSettings()
    shares = dict(zip(panel.streams, shares_of(panel.streams), strict=True))
    last = len(panel.runs) - 1
    found = []
    for run in range(last + 1):
        until = panel.select(range(run + 1)).recent(RUNS_READ)
        found.append(PanelEvidence(until, number - (last - run), settings, settings.error, shares).after_last())
    return np.array(found)
