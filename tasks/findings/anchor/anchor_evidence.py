"""Say what the anchors of two runs show about their judge."""

from collections.abc import Mapping
from functools import cached_property
from math import log

import numpy as np

from metric_core.errors import AssayError
from metric_core.statistics.bounded_means import Bounds
from metric_core.statistics.pairs import ScoreColumns
from tasks.comparison.judge_evidence import JudgeDoubt, JudgeEvidence
from tasks.comparison.mean_change import MeanChange, changed_rows, mean_change, read_pairs
from tasks.comparison.run_pair import Matching, RunPair
from tasks.findings.anchor.anchor_record import ANCHOR, repeat_of
from tasks.findings.repeats.judge_drift import find_changed_judges
from tasks.findings.repeats.repeat_record import AskedAgain
from tasks.runs.finished_run import FinishedRun
from tasks.runs.run_folder import MANIFEST

_DOUBTFUL = log(20)
"""Logarithm of the e-value from which on it is doubtful that a judge answers as before."""
_DECIMALS = 12


class AnchorEvidence(JudgeEvidence):
    """Evidence of the anchors of two runs. Tables are read when they are needed."""

    def __init__(self, before: FinishedRun, after: FinishedRun) -> None:
        self._before = before
        self._after = after

    @property
    def is_comparable(self) -> bool:
        """Whether both runs have an anchor with scores, and these share rows."""
        return self._anchors is not None

    @property
    def confirmation(self) -> str | None:
        """Sentence on anchor rows that were asked about again; None without any."""
        found = repeat_of(self._after.record)
        if found is None or not found.judges:
            return None
        # The test of their answers adds up the runs, however few rows this one asks about.
        return f"as far as the anchor goes it answers as before: {found.rows} rows asked again show no change"

    def doubt(self, metric: str, sign: float, bounds: Bounds | None) -> JudgeDoubt | None:
        """Return the change of anchor rows asked again, if these show a changed judge, or make it likely."""
        if not self._may_have_changed:
            return None
        reason = "; ".join(self._other_answers) or "the judge has the same fingerprint, but its answers are in doubt"
        scores = (repeat_of(self._after.record) or AskedAgain()).scores.get(metric, {})
        changes = np.array([sign * (found[1] - found[0]) for found in scores.values()], dtype=np.float64)
        rounded = np.round(changes, _DECIMALS)
        return JudgeDoubt(reason, MeanChange.from_changes("anchor rows asked again", rounded, bounds))

    def change(self, metric: str) -> MeanChange | None:
        """Return the change of the anchor rows whose texts are the same in both runs; None without such rows."""
        pairs, sign = read_pairs(self._columns.get(metric))
        if pairs is None:
            return None
        found = mean_change("anchor rows", pairs, [row not in self._changed for row in pairs.rows], sign)
        return found if found.rows else None

    @cached_property
    def _anchors(self) -> RunPair | None:
        """The anchors of both runs; None if one of them has none, or they share no row."""
        before, after = (run.folder / ANCHOR for run in (self._before, self._after))
        if not all((folder / MANIFEST).is_file() for folder in (before, after)):
            return None
        try:
            return RunPair.from_runs(FinishedRun(before), FinishedRun(after), Matching())
        except AssayError:
            return None

    @cached_property
    def _columns(self) -> Mapping[str, ScoreColumns]:
        return {} if self._anchors is None else {column.metric: column for column in self._anchors.columns()}

    @cached_property
    def _changed(self) -> frozenset[str]:
        return frozenset() if self._anchors is None else changed_rows(self._anchors)

    @cached_property
    def _other_answers(self) -> tuple[str, ...]:
        """Sentences on the judges that answer differently under the same name, unlike in the baseline."""
        before, after = (
            [
                (each.judge, each.change.since)
                for each in find_changed_judges(repeat_of(run.record))
                if each.change is not None
            ]
            for run in (self._before, self._after)
        )
        return tuple(
            f"the judge {judge} answers differently under the same name"
            for judge, since in after
            if (judge, since) not in before
        )

    @property
    def _may_have_changed(self) -> bool:
        """Whether the repeated questions show a changed judge, or those of the later run alone make it likely."""
        known = {each.judge for each in find_changed_judges(repeat_of(self._before.record))}
        latest = repeat_of(self._after.record) or AskedAgain()
        doubtful = (each.log_e_value >= _DOUBTFUL for each in latest.judges if each.judge not in known)
        return bool(self._other_answers) or any(doubtful)
