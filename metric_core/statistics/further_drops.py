"""Raise alarms about further drops: a metric that has an alarm becomes worse again.

An alarm is open until its drop is regained, for months if the system is not repaired, and all that time the metric is
worse than in the baseline. So the runs after the alarm are compared with the run that raised it and the two after
that, row by row and by the same e-values. The first of them was chosen because it was bad: by chance, later runs are
rather better than it, which makes false alarms rarer. After a further alarm, its runs take their place.

The weights of a year sum to at most 0.95, and each run is tested once. `SHARE_OF_FURTHER` of the error is for further
alarms, divided among metrics and slices. So alarms of both kinds together are false in at most `error` of the years,
also in years in which some metrics do become worse.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from metric_core.statistics.alarms import RUNS_READ, SHARE_OF_FURTHER, Alarm, AlarmSettings, PanelEvidence, shares_of
from metric_core.statistics.run_panel import Panel

RUNS_COMPARED = 3
"""Number of runs, beginning with that of an alarm, whose mean per row the runs after them are compared with."""


def update_further_alarms(
    panel: Panel,
    references: Panel,
    number: int,
    settings: AlarmSettings | None = None,
    known: Sequence[Alarm] = (),
) -> list[Alarm]:
    """Return the alarms about further drops that are open after the last run of a panel.

    Such an alarm is open until two runs in a row have regained more than half of the further drop, and no longer than
    the alarm before it.

    Args:
        panel: The panel that `update_alarms` was given.
        references: Panel of the runs that raised the alarms that were open before, and of those after each of them,
            with the same rows and metrics. If one of the `RUNS_COMPARED` is missing, the next one takes its place.
        number: Number of the last run among the runs of its calendar year, from 1.
        settings: Settings; None means the defaults.
        known: Alarms that `update_alarms` returned, and those about further drops that were open after the previous
            run.
    """
    settings = settings or AlarmSettings()
    panel = panel.recent(RUNS_READ)
    references = replace(references, first_runs=panel.first_runs)
    shares = dict(zip(panel.streams, shares_of(panel.streams), strict=True)) if panel.metrics else {}
    error = settings.error * SHARE_OF_FURTHER
    found: list[Alarm] = []
    for first in (alarm for alarm in known if not alarm.further):
        part = panel.only([first.stream])
        evidence = PanelEvidence(part, number, settings, error, shares)
        last = first
        of_stream = [alarm for alarm in known if alarm.stream == first.stream and alarm.further]
        for alarm in sorted(of_stream, key=lambda each: each.further):
            if evidence.is_over(alarm):
                break
            last = evidence.carry_over(alarm)
            found.append(last)
        places = [place for place, run in enumerate(references.runs) if last.raised <= run < panel.runs[-1]]
        if last.is_new or not places:
            continue
        before = references.only([first.stream]).select(places[:RUNS_COMPARED])
        later = part.select([place for place, run in enumerate(part.runs) if run > before.runs[-1]])
        beyond = PanelEvidence(later.compared_with(before), number, settings, error, shares)
        if beyond.is_raised(first.stream):
            [drop] = beyond.describe([first.stream], {})
            means = before.means()[:, before.streams.index(first.stream)]
            base = 0.0 if np.isnan(means).all() else -float(np.nanmean(means)) * panel.ranges[first.stream.metric]
            found.append(replace(drop, further=last.further + 1, base=base))
    return found


def keep_sizes(alarms: Sequence[Alarm], further: Sequence[Alarm], previous: Sequence[Alarm]) -> list[Alarm]:
    """Return alarms, those that further drops go beyond with the sizes that they had before.

    What was lost in a further drop belongs to another alarm, and need not be regained for this one.

    Args:
        alarms: Alarms of the last run about drops from the baseline.
        further: Its alarms about further drops.
        previous: Alarms that were open after the previous run.
    """
    exceeded = {alarm.stream for alarm in further}
    sizes = {alarm.stream: alarm for alarm in previous if alarm.stream in exceeded and not alarm.further}
    return [
        replace(alarm, drop=sizes[alarm.stream].drop, interval=sizes[alarm.stream].interval)
        if alarm.stream in sizes
        else alarm
        for alarm in alarms
    ]
