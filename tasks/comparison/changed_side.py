"""Determine whether the system or the judge changed, from rows with the same texts in both runs.

A row with the same texts cannot have another score because of the system. So if anything that determines scores
differs, only such rows of the run show which of the two changed. The anchor has other questions: a judge that became
stricter on a topic that the anchor lacks leaves it alone. Answers are cached, so a judge that changes under its name
shows only in anchor rows that were asked about again, and in rows with other texts.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from math import log

import numpy as np

from metric_core.errors import AssayError
from metric_core.records import Direction
from metric_core.statistics.bounded_means import LEAST_UNITS, Bounds, estimate_interval
from metric_core.statistics.pairs import Pairs, ScoreColumns, pair_scores
from metric_core.statistics.resampling import SEED, Floats, Interval, Units
from tasks.comparison.run_differences import find_measurement_changes
from tasks.comparison.run_pair import Matching, RunPair
from tasks.models.judges.protocol import IN_PROCESS
from tasks.record.repeats import AskedAgain
from tasks.record.run_record import RunRecord
from tasks.runs.finished_run import FinishedRun
from tasks.runs.judge_drift import find_changed_judges
from tasks.runs.run_folder import ANCHOR, MANIFEST

LEAST_SAME = 20
"""Number of rows with the same texts from which on they say whose change it is."""
_DOUBTFUL = log(20)
"""Logarithm of the e-value from which on it is doubtful that a judge answers as before."""
_NOT_TEXT = frozenset({"extras"})
"""Columns of a sample that no metric reads."""
_DECIMALS = 12


class Side(StrEnum):
    """The side of a comparison that changed."""

    SYSTEM = "system"
    JUDGE = "judge"
    UNKNOWN = "unknown"


_SENTENCES = {
    Side.SYSTEM: "The system changed",
    Side.JUDGE: "The judge changed",
    Side.UNKNOWN: "It is not known whether the system or the judge changed",
}


@dataclass(frozen=True, slots=True)
class ChangedSide:
    """The side that changed, and the rows that show it.

    Args:
        reason: Sentence on why.
    """

    side: Side
    reason: str

    @property
    def sentence(self) -> str:
        """The side and the reason, as a sentence without its full stop.

        >>> ChangedSide(Side.SYSTEM, "the judge needs no server").sentence
        'The system changed: the judge needs no server'
        """
        return f"{_SENTENCES[self.side]}: {self.reason}"


@dataclass(frozen=True, slots=True)
class _MeanChange:
    """The mean change of the scores of rows, positive for an improvement, with its 95 % interval.

    Args:
        kind: Plural for the rows.
        interval: None for fewer than five rows or groups.
    """

    kind: str
    rows: int
    mean: float
    interval: Interval | None

    @classmethod
    def from_changes(
        cls, kind: str, changes: Floats, bounds: Bounds | None, groups: Sequence[str] | None = None
    ) -> "_MeanChange":
        """Return the mean of changes.

        Args:
            bounds: Bounds of the changes; None if there are none.
            groups: Group of each row; None if rows are independent.
        """
        interval = None
        if len(changes) >= LEAST_UNITS:
            interval = estimate_interval(Units.from_values(changes, groups), bounds, SEED)
        return cls(kind, len(changes), float(changes.mean()) if len(changes) else 0.0, interval)

    @property
    def way(self) -> int:
        """1 or -1 if the mean changed upwards or downwards by more than chance, else 0."""
        if self.interval is None or self.interval.low <= 0 <= self.interval.high:
            return 0
        return 1 if self.interval.low > 0 else -1

    def goes_beyond(self, other: "_MeanChange") -> bool:
        """Return whether the mean lies further from 0 than that of other rows, on the same side, beyond chance."""
        if self.interval is None or other.interval is None:
            return False
        return self.interval.high < other.interval.low if self.mean < 0 else self.interval.low > other.interval.high

    def __str__(self) -> str:
        ends = "" if self.interval is None else f" ({self.interval.low:+.3f} to {self.interval.high:+.3f})"
        return f"{self.rows} {self.kind} changed by {self.mean:+.3f}{ends} on average"


class SideFinder:
    """Finds what changed between a baseline and a run. Tables are read when they are needed."""

    def __init__(self, baseline: FinishedRun, pair: RunPair) -> None:
        self._before = baseline
        self._after = pair.b.run
        self._pair = pair

    @classmethod
    def from_runs(cls, baseline: FinishedRun, run: FinishedRun, matching: Matching | None = None) -> "SideFinder":
        """Pair the rows of two runs.

        Args:
            matching: Matching and grouping of the rows; by default, rows are matched by their ids.

        Raises:
            ConfigError: The rows cannot be matched or grouped.
        """
        return cls(baseline, RunPair.from_runs(baseline, run, matching or Matching()))

    @property
    def has_evidence(self) -> bool:
        """Whether there is something to say: both runs have an anchor, or the measurement changed."""
        return self._anchors is not None or bool(self.changes)

    @cached_property
    def changes(self) -> tuple[str, ...]:
        """Sentences on what changed in the measurement: judge, prompts, settings of the judge, metrics."""
        return find_measurement_changes(self._before, self._after)

    def find(self, metric: str, rows: Collection[str] | None = None) -> ChangedSide:
        """Return what changed the mean score of a metric.

        Args:
            rows: Names of the rows that the mean is about, such as those of a slice; None for all.

        Raises:
            RunFolderError: A table cannot be read.
        """
        pairs, sign = _read_pairs(self._columns.get(metric))
        if pairs is None:
            return _unknown("the runs have no rows with scores of this metric on one scale in both")
        chosen = [rows is None or row in rows for row in pairs.rows]
        if not any(chosen):
            return _unknown("none of these rows has a score of this metric in both runs")
        observed = float((sign * pairs.differences[chosen]).mean())
        if observed == 0:
            return _unknown("the mean score did not change")
        if not self._judge_differs(metric):
            return self._find_under_one_name(metric, pairs, sign, observed)
        same = [row not in self._changed and is_in for row, is_in in zip(pairs.rows, chosen, strict=True)]
        others = [is_in and not is_same for is_in, is_same in zip(chosen, same, strict=True)]
        return _compare_sides(
            "the judge has another fingerprint",
            _mean_change("rows with the same texts", pairs, same, sign),
            _mean_change("rows with other texts", pairs, others, sign),
            self._of_anchor(metric),
            observed,
        )

    def _find_under_one_name(self, metric: str, pairs: Pairs, sign: float, observed: float) -> ChangedSide:
        """Return what changed if the judge has the same fingerprint in both runs."""
        if not self._may_have_changed:
            if self._runs_in_process:
                return ChangedSide(
                    Side.SYSTEM, "the judge has the same model, prompts and settings, and needs no server"
                )
            found = self._after.record.repeat
            # The test of their answers adds up the runs, however few rows this one asks about.
            if found is not None and found.judges:
                same = f"its answers about {found.rows} anchor rows asked again show no change"
                return ChangedSide(Side.SYSTEM, f"the judge has the same fingerprint, and {same}")
            return _unknown(
                "the judge has the same fingerprint, but no anchor row was asked about again to show that its server "
                "still answers the same"
            )
        again = self._asked_again(metric, sign, None if pairs.bounds is None else pairs.bounds.of_differences)
        doubt = "; ".join(self._other_answers) or "the judge has the same fingerprint, but its answers are in doubt"
        if again.rows >= LEAST_SAME and again.way * observed > 0:
            return ChangedSide(Side.JUDGE, f"{doubt}, and {again}")
        return _unknown(f"{doubt}; as far as the anchor goes, {again}")

    @cached_property
    def _columns(self) -> Mapping[str, ScoreColumns]:
        return {column.metric: column for column in self._pair.columns()}

    @cached_property
    def _changed(self) -> frozenset[str]:
        return _changed_rows(self._pair)

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
    def _anchor_columns(self) -> Mapping[str, ScoreColumns]:
        return {} if self._anchors is None else {column.metric: column for column in self._anchors.columns()}

    @cached_property
    def _anchor_changed(self) -> frozenset[str]:
        return frozenset() if self._anchors is None else _changed_rows(self._anchors)

    def _of_anchor(self, metric: str) -> _MeanChange | None:
        """Return the change of the anchor rows whose texts are the same in both runs; None without such rows."""
        pairs, sign = _read_pairs(self._anchor_columns.get(metric))
        if pairs is None:
            return None
        found = _mean_change("anchor rows", pairs, [row not in self._anchor_changed for row in pairs.rows], sign)
        return found if found.rows else None

    @cached_property
    def _other_answers(self) -> tuple[str, ...]:
        """Sentences on the judges that answer differently under the same name, unlike in the baseline."""
        before, after = (
            [
                (each.judge, each.change.since)
                for each in find_changed_judges(run.record.repeat)
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
        known = {each.judge for each in find_changed_judges(self._before.record.repeat)}
        latest = self._after.record.repeat or AskedAgain()
        doubtful = (each.log_e_value >= _DOUBTFUL for each in latest.judges if each.judge not in known)
        return bool(self._other_answers) or any(doubtful)

    def _asked_again(self, metric: str, sign: float, bounds: Bounds | None) -> _MeanChange:
        """Return the change of the anchor rows that were asked about again, since the judge answers differently."""
        scores = (self._after.record.repeat or AskedAgain()).scores.get(metric, {})
        changes = np.array([sign * (found[1] - found[0]) for found in scores.values()], dtype=np.float64)
        return _MeanChange.from_changes("anchor rows asked again", np.round(changes, _DECIMALS), bounds)

    def _judge_differs(self, metric: str) -> bool:
        """Return whether anything changed that determines the scores of a metric besides the texts."""
        before, after = self._before.record, self._after.record
        if _measure(before, metric) != _measure(after, metric):
            return True
        old, new = before.calibration.identities, after.calibration.identities
        return old.get(metric) != new.get(metric)

    @property
    def _runs_in_process(self) -> bool:
        record = self._after.record
        is_served = record.embedder is not None and record.embedder.served
        return all(judge.backend in IN_PROCESS for judge in (record.judge, *record.judges)) and not is_served


def _read_pairs(column: ScoreColumns | None) -> tuple[Pairs | None, float]:
    """Return the paired scores of a metric, None unless they have one scale, and the sign of an improvement."""
    if column is None or not column.a or not column.b:
        return None, 1.0
    found = pair_scores(column).pairs
    return (found[0] if len(found) == 1 else None), (-1.0 if column.direction is Direction.LOWER else 1.0)


def _mean_change(kind: str, pairs: Pairs, chosen: Sequence[bool], sign: float) -> _MeanChange:
    mask = np.array(chosen, dtype=bool)
    groups = None if pairs.groups is None else [name for name, is_in in zip(pairs.groups, mask, strict=True) if is_in]
    bounds = None if pairs.bounds is None else pairs.bounds.of_differences
    return _MeanChange.from_changes(kind, sign * pairs.differences[mask], bounds, groups)


def _compare_sides(
    judge: str, same: _MeanChange, others: _MeanChange, anchor: _MeanChange | None, observed: float
) -> ChangedSide:
    """Return what changed if the judge may be another one, by the rows of the run.

    Args:
        judge: Sentence on the judge.
        same: Change of the rows with the same texts, which is the judge's.
        others: Change of the rows with other texts.
        anchor: Change of the anchor; None without one.
        observed: Mean change of all rows.
    """
    if same.rows >= LEAST_SAME and same.way * observed > 0:
        return ChangedSide(Side.JUDGE, f"{judge}, and {same}")
    if same.rows >= LEAST_SAME and others.mean * observed > 0 and others.goes_beyond(same):
        return ChangedSide(Side.SYSTEM, f"{judge}, but {same}; {others}")
    shown = f"; {same}" if same.rows else ", and no row of the run has the same texts in both"
    if anchor is None:
        return _unknown(f"{judge}{shown}, and there is no anchor")
    return _unknown(f"{judge}{shown}; as far as the anchor goes, {anchor}")


def _changed_rows(pair: RunPair) -> frozenset[str]:
    """Return the names of the rows of both runs with another text."""
    changed = pair.changes().changed
    return frozenset(row for row, columns in changed.items() if not _NOT_TEXT.issuperset(columns))


def _measure(record: RunRecord, metric: str) -> tuple[object, ...]:
    """Return what determines the scores of a metric besides the texts and the judged tables."""
    found = next((each for each in record.metrics if each.key == metric), None)
    calibrated = record.calibration.metrics.get(metric)
    return (
        record.formulas or record.release,
        record.embedder,
        record.language,
        record.config.verdict,
        calibrated.created if calibrated is not None and calibrated.applied else None,
        None if found is None else (found.name, found.code, found.parameters),
    )


def _unknown(reason: str) -> ChangedSide:
    return ChangedSide(Side.UNKNOWN, reason)
