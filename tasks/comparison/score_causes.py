"""Find what moved the scores of a run since a baseline: the system, the judge, or both.

The evidence is what both runs scored although its texts are the same: the rows of the anchor, and rows of the data
whose texts did not change. Their answers are cached, so they do not show a judge that changes under its name: anchor
rows that were asked about again do, and only rows with other texts have been judged by it.
"""

from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cached_property
from math import log
from typing import Any

import numpy as np

from metric_core.errors import AssayError
from metric_core.records import Direction
from metric_core.statistics.attribution import Attribution, Cause, ScoreChanges, attribute_change
from metric_core.statistics.pairs import Pairs, ScoreColumns, pair_scores
from tasks.comparison.run_differences import find_measurement_changes
from tasks.comparison.run_pair import Matching, RunPair
from tasks.models.judges.protocol import IN_PROCESS
from tasks.runs.finished_run import FinishedRun
from tasks.runs.judge_drift import find_changed_judges, read_findings
from tasks.runs.judge_roles import judge_roles
from tasks.runs.run_folder import ANCHOR, MANIFEST

_DOUBTFUL = log(20)
"""Logarithm of the e-value from which on it is doubtful that a judge answers as before."""
_NOT_TEXT = frozenset({"extras"})
"""Columns of a sample that no metric reads."""


class CauseFinder:
    """Finds what moved the scores of a run since a baseline. Tables are read when they are needed."""

    def __init__(self, baseline: FinishedRun, pair: RunPair) -> None:
        self._before = baseline
        self._after = pair.b.run
        self._pair = pair

    @classmethod
    def from_runs(cls, baseline: FinishedRun, run: FinishedRun, matching: Matching | None = None) -> "CauseFinder":
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

    def find(self, metric: str, rows: Collection[str] | None = None) -> Attribution:
        """Return what moved the mean score of a metric.

        Args:
            rows: Names of the rows that the mean is about, such as those of a slice; None for all.

        Raises:
            RunFolderError: A table cannot be read.
        """
        pairs, sign = _read_pairs(self._columns.get(metric))
        if pairs is None:
            return _unknown("the runs have no rows with scores of this metric on one scale in both")
        chosen = [row in rows for row in pairs.rows] if rows is not None else [True] * len(pairs.rows)
        if not any(chosen):
            return _unknown("none of these rows has a score of this metric in both runs")
        width = None if pairs.bounds is None else pairs.bounds.high - pairs.bounds.low
        differs = self._judge_differs(metric)
        if differs is False and self._may_have_changed:
            judged = [row in self._changed and is_in for row, is_in in zip(pairs.rows, chosen, strict=True)]
            return attribute_change(
                _select(pairs, judged if any(judged) else chosen, sign),
                self._asked_again(metric, sign),
                judge_differs=", and ".join(self._other_answers) or False,
                width=width,
            )
        return attribute_change(
            _select(pairs, chosen, sign),
            self._fixed(metric, pairs, sign),
            judge_differs=differs,
            runs_in_process=self._runs_in_process,
            width=width,
        )

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

    def _fixed(self, metric: str, pairs: Pairs, sign: float) -> ScoreChanges | None:
        """Return the changes of rows whose texts are the same in both runs; None without an anchor."""
        same = [row not in self._changed for row in pairs.rows]
        found = [_select(pairs, same, sign)] if any(same) else []
        of_anchor, _ = _read_pairs(self._anchor_columns.get(metric))
        if of_anchor is not None:
            unchanged = [row not in self._anchor_changed for row in of_anchor.rows]
            found.append(_select(of_anchor, unchanged, sign))
        if not found:
            return None if self._anchors is None else ScoreChanges(np.empty(0))
        return _join(found, "rows with the same texts" if any(same) else "anchor rows")

    @cached_property
    def _other_answers(self) -> tuple[str, ...]:
        """Sentences on the judges that answer differently under the same name, unlike in the baseline."""
        before, after = (find_changed_judges(read_findings(run.manifest)) for run in (self._before, self._after))
        known = {(each["judge"], each["told"]["since"]) for each in before}
        return tuple(
            f"the judge {each['judge']} answers differently under the same name"
            for each in after
            if (each["judge"], each["told"]["since"]) not in known
        )

    @property
    def _may_have_changed(self) -> bool:
        """Whether the repeated questions show a changed judge, or those of the later run alone make it likely."""
        known = {each["judge"] for each in find_changed_judges(read_findings(self._before.manifest))}
        latest = (
            each for each in read_findings(self._after.manifest).get("judges") or () if each["judge"] not in known
        )
        return bool(self._other_answers) or any(each.get("log_e_value", 0.0) >= _DOUBTFUL for each in latest)

    def _asked_again(self, metric: str, sign: float) -> ScoreChanges:
        """Return the changes of the anchor rows that were asked about again, since the judge answers differently."""
        scores = (read_findings(self._after.manifest).get("scores") or {}).get(metric) or {}
        before, after = ({row: found[place] for row, found in scores.items()} for place in (0, 1))
        return replace(ScoreChanges.from_scores(before, after, sign), name="anchor rows asked again")

    def _judge_differs(self, metric: str) -> bool | None:
        """Return whether anything changed that determines the scores of a metric besides the texts."""
        before, after = self._before.manifest, self._after.manifest
        if _measure(before, metric) != _measure(after, metric):
            return True
        old, new = (_identities(manifest) for manifest in (before, after))
        if old is None or new is None:
            return None
        return old.get(metric) != new.get(metric)

    @property
    def _runs_in_process(self) -> bool:
        manifest = self._after.manifest
        served = (manifest.get("embedder") or {}).get("served")
        judges = [(manifest.get("judge") or {}).get("backend"), *(role["backend"] for role in judge_roles(manifest))]
        return all(backend in IN_PROCESS for backend in judges) and not served


def _read_pairs(column: ScoreColumns | None) -> tuple[Pairs | None, float]:
    """Return the paired scores of a metric, None unless they have one scale, and the sign of an improvement."""
    if column is None or not column.a or not column.b:
        return None, 1.0
    found = pair_scores(column).pairs
    return (found[0] if len(found) == 1 else None), (-1.0 if column.direction is Direction.LOWER else 1.0)


def _select(pairs: Pairs, chosen: Collection[bool], sign: float) -> ScoreChanges:
    mask = np.array(list(chosen), dtype=bool)
    groups = None if pairs.groups is None else [name for name, is_in in zip(pairs.groups, mask, strict=True) if is_in]
    return ScoreChanges(sign * pairs.differences[mask], sign * pairs.a[mask], groups)


def _join(parts: Collection[ScoreChanges], name: str) -> ScoreChanges:
    """Join changes of rows of different data; rows of different data are of different groups."""
    groups: list[str] = []
    for number, part in enumerate(parts):
        names = part.groups or [f"row {row}" for row in range(len(part))]
        groups += [f"{number} {name}" for name in names]
    before = [part.before for part in parts if part.before is not None]
    return ScoreChanges(
        np.concatenate([part.changes for part in parts]),
        np.concatenate(before),
        groups if any(part.groups is not None for part in parts) else None,
        name,
    )


def _changed_rows(pair: RunPair) -> frozenset[str]:
    """Return the names of the rows of both runs with another text."""
    changed = pair.changes().changed
    return frozenset(row for row, columns in changed.items() if not _NOT_TEXT.issuperset(columns))


def _identities(manifest: Mapping[str, Any]) -> Mapping[str, str] | None:
    """Return the digest of all that determines the judged tables of each metric; None in runs of earlier releases."""
    identities: Mapping[str, str] | None = (manifest.get("calibration") or {}).get("identities")
    return identities


def _measure(manifest: Mapping[str, Any], metric: str) -> dict[str, Any]:
    """Return what determines the scores of a metric besides the texts and the judged tables."""
    entry: Mapping[str, Any] = next((each for each in manifest["metrics"] if each["key"] == metric), {})
    calibrated = ((manifest.get("calibration") or {}).get("metrics") or {}).get(metric) or {}
    return {
        "formulas": manifest.get("formulas") or manifest["versions"].get("rag-assay"),  # older runs have the version
        "embedder": _without_note(manifest.get("embedder")),
        "language": _without_note(manifest.get("language")),
        "verdict": (manifest.get("config") or {}).get("verdict"),
        "calibration": calibrated.get("created") if calibrated.get("applied") else None,
        **{name: entry.get(name) for name in ("name", "code", "parameters")},
    }


def _without_note(identity: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the identity of a model without the sentence about it, which names the address of a server."""
    return {name: value for name, value in (identity or {}).items() if name != "note"}


def _unknown(reason: str) -> Attribution:
    return Attribution(Cause.UNKNOWN, reason, {})
