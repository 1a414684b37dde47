"""Determine whether the system or the judge changed, from rows with the same texts in both runs.

A row with the same texts cannot have another score because of the system. So if anything that determines scores
differs, only such rows of the run show which of the two changed. The anchor has other questions: a judge that became
stricter on a topic that the anchor lacks leaves it alone. Answers are cached, so a judge that changes under its name
shows only in anchor rows that were asked about again, and in rows with other texts.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import numpy as np

from metric_core.statistics.pairs import Pairs, ScoreColumns
from tasks.comparison.judge_evidence import JudgeEvidence
from tasks.comparison.mean_change import MeanChange, changed_rows, mean_change, read_pairs
from tasks.comparison.run_differences import find_measurement_changes
from tasks.comparison.run_pair import RunPair
from tasks.models.judges.protocol import IN_PROCESS
from tasks.record.run_record import RunRecord
from tasks.runs.finished_run import FinishedRun

LEAST_SAME = 20
"""Number of rows with the same texts from which on they say whose change it is."""


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


class SideFinder:
    """Finds what changed between a baseline and a run. Tables are read when they are needed."""

    def __init__(self, baseline: FinishedRun, pair: RunPair, evidence: JudgeEvidence) -> None:
        self._before = baseline
        self._after = pair.b.run
        self._pair = pair
        self._evidence = evidence

    @property
    def has_evidence(self) -> bool:
        """Whether there is something to say: both runs have rows that never change, or the measurement changed."""
        return self._evidence.is_comparable or bool(self.changes)

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
        pairs, sign = read_pairs(self._columns.get(metric))
        if pairs is None:
            return _unknown("the runs have no rows with scores of this metric on one scale in both")
        chosen = [rows is None or row in rows for row in pairs.rows]
        if not any(chosen):
            return _unknown("none of these rows has a score of this metric in both runs")
        weights = None if pairs.weights is None else pairs.weights[chosen]
        observed = float(np.average(sign * pairs.differences[chosen], weights=weights))
        if observed == 0:
            return _unknown("the mean score did not change")
        if pairs.is_open:
            return ChangedSide(Side.SYSTEM, "no judge measures it")
        if not self._judge_differs(metric):
            return self._find_under_one_name(metric, pairs, sign, observed)
        same = [row not in self._changed and is_in for row, is_in in zip(pairs.rows, chosen, strict=True)]
        others = [is_in and not is_same for is_in, is_same in zip(chosen, same, strict=True)]
        return compare_sides(
            "the judge has another fingerprint",
            mean_change("rows with the same texts", pairs, same, sign),
            mean_change("rows with other texts", pairs, others, sign),
            self._evidence.change(metric),
            observed,
        )

    def _find_under_one_name(self, metric: str, pairs: Pairs, sign: float, observed: float) -> ChangedSide:
        """Return what changed if the judge has the same fingerprint in both runs."""
        bounds = None if pairs.bounds is None else pairs.bounds.of_differences
        doubt = self._evidence.doubt(metric, sign, bounds)
        if doubt is None:
            if self._runs_in_process:
                return ChangedSide(
                    Side.SYSTEM, "the judge has the same model, prompts and settings, and needs no server"
                )
            if (same := self._evidence.confirmation) is not None:
                return ChangedSide(Side.SYSTEM, f"the judge has the same fingerprint, and {same}")
            return _unknown(
                "the judge has the same fingerprint, but no anchor row was asked about again to show that its server "
                "still answers the same"
            )
        if doubt.change.rows >= LEAST_SAME and doubt.change.way * observed > 0:
            return ChangedSide(Side.JUDGE, f"{doubt.reason}, and {doubt.change}")
        return _unknown(f"{doubt.reason}; as far as the anchor goes, {doubt.change}")

    @cached_property
    def _columns(self) -> Mapping[str, ScoreColumns]:
        return {column.metric: column for column in self._pair.columns()}

    @cached_property
    def _changed(self) -> frozenset[str]:
        return changed_rows(self._pair)

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


def compare_sides(
    judge: str, same: MeanChange, others: MeanChange, anchor: MeanChange | None, observed: float
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
