"""Compare the diagnoses of two runs: which answers were lost or regained, and through which part of the system."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as pq

from metric_core import columns as c
from metric_core.declarations.diagnosis_class import DiagnosisClass, SystemPart
from metric_core.diagnosis.classes import CLASSES, UNDIAGNOSED
from metric_core.errors import RunFolderError
from metric_core.statistics.paired_tests import mcnemar_mid_p
from tasks.comparison.run_differences import TEST_COLUMNS
from tasks.comparison.run_pair import RunPair, RunRows
from tasks.findings.diagnosis.diagnosis_counts import DiagnosisCounts
from tasks.runs.run_folder import DIAGNOSIS

MOST_ROWS = 50
"""Maximum number of rows named per change."""

CLEAR = 0.05
"""p-value below which more answers are lost than regained, or the reverse, by more than chance."""


class DiagnosisCause(StrEnum):
    """The cause of a change of a diagnosis: a part of the system, the judge, or the test itself."""

    INDEX = "index"
    GENERATOR = "generator"
    JUDGE = "judge"
    TEST = "test"


@dataclass(frozen=True, slots=True)
class DiagnosisChange:
    """Rows whose diagnosis changed in the same way.

    Args:
        before: Diagnosis in the first run, or "undiagnosed".
        after: Diagnosis in the second run, or "undiagnosed".
        cause: Part of the system, judge or test that the change is due to.
        rows: Names of the first rows.
        is_loss: True if good answers were lost, False if they were regained, None for neither.
    """

    before: str
    after: str
    cause: DiagnosisCause
    count: int
    rows: tuple[str, ...]
    is_loss: bool | None


@dataclass(frozen=True, slots=True)
class DiagnosisChanges:
    """The diagnoses of the rows that two runs have in common.

    Args:
        a: Diagnosis -> number of rows in the first run.
        b: Diagnosis -> number of rows in the second run.
        changes: Rows that changed, losses first, the most rows first.
        lost: Cause -> number of answers lost.
        regained: Cause -> number of answers regained.
        p_value: Probability of so unequal numbers of losses and regains by chance (McNemar's mid-p).
        lost_points: Cause -> number of key points that answers no longer state.
        regained_points: Cause -> number of key points that answers did not state before.
    """

    entry: ClassVar[str] = "diagnosis"

    rows: int
    a: Mapping[str, int]
    b: Mapping[str, int]
    changes: tuple[DiagnosisChange, ...]
    lost: Mapping[DiagnosisCause, int]
    regained: Mapping[DiagnosisCause, int]
    p_value: float
    lost_points: Mapping[DiagnosisCause, int] = field(default_factory=dict)
    regained_points: Mapping[DiagnosisCause, int] = field(default_factory=dict)

    def to_json(self) -> Mapping[str, Any]:
        """Return the changes by name."""
        return asdict(self)

    @property
    def is_clear(self) -> bool:
        """Whether losses and regains differ by more than chance."""
        return self.p_value < CLEAR


def compare_diagnoses(pair: RunPair) -> DiagnosisChanges | None:
    """Compare the diagnoses of the rows that two runs have in common; None if either run has none.

    The index is the cause of a fault of the index in a row whose passages
    differ, and of its end; every other change of an answer is due to the generator. If neither passages nor response
    differ, the judge changed its mind, and if the question or the reference differ, the test did.

    Raises:
        RunFolderError: The table of diagnoses of a run is damaged.
    """
    if pair.a is None:
        return None
    before, after = _read(pair.a), _read(pair.b)
    if before is None or after is None:
        return None
    known = {**_known_classes(pair.a), **_known_classes(pair.b)}
    common = [name for name in after if name in before]
    is_changed = any(before[name] != after[name] for name in common)
    changed_columns = pair.changes().changed if is_changed else {}
    rows: dict[tuple[str, str, DiagnosisCause], list[str]] = {}
    lost_points, regained_points = Counter[DiagnosisCause](), Counter[DiagnosisCause]()
    for name in common:
        (old, points_before, asked_before), (new, points_after, asked_after) = before[name], after[name]
        differing = frozenset(changed_columns.get(name, ()))
        if old != new:
            rows.setdefault((old, new, _find_cause(known.get(old), known.get(new), differing)), []).append(name)
        is_same_test = asked_before == asked_after and differing.isdisjoint(TEST_COLUMNS)
        if points_before is not None and points_after is not None and is_same_test:
            lost_points.update(_causes(points_after, points_before, differing))
            regained_points.update(_causes(points_before, points_after, differing))
    changes = [
        DiagnosisChange(old, new, cause, len(names), tuple(names[:MOST_ROWS]), _is_loss(known.get(old), known.get(new)))
        for (old, new, cause), names in rows.items()
    ]
    changes.sort(key=lambda change: (change.is_loss is not True, change.is_loss is None, -change.count))
    lost, regained = _count(changes, is_loss=True), _count(changes, is_loss=False)
    return DiagnosisChanges(
        rows=len(common),
        a=dict(Counter(before[name][0] for name in common)),
        b=dict(Counter(after[name][0] for name in common)),
        changes=tuple(changes),
        lost=lost,
        regained=regained,
        p_value=mcnemar_mid_p(sum(regained.values()), sum(lost.values())),
        lost_points=dict(lost_points),
        regained_points=dict(regained_points),
    )


def count_lost_points(pair: RunPair, left_out: Collection[str] = ()) -> dict[str, tuple[int, int]]:
    """Return how many key points answers lack in both runs, by the part that lost them.

    Args:
        left_out: Rows that do not count. Neither do those whose key points differ.

    Returns:
        Part in words -> its counts in the first and the second run; empty if a run has no key points.

    Raises:
        RunFolderError: The table of diagnoses of a run is damaged.
    """
    assert pair.a is not None  # noqa: S101 both runs are counted
    before, after = _read(pair.a) or {}, _read(pair.b) or {}
    lost = (Counter[str | None](), Counter[str | None]())
    for name in before.keys() & after.keys() - set(left_out):
        (_, old, old_digest), (_, new, new_digest) = before[name], after[name]
        if old is not None and new is not None and old_digest == new_digest:
            lost[0].update(old.values())
            lost[1].update(new.values())
    counts = {part: (lost[0][part], lost[1][part]) for part in (*map(str, SystemPart), None)}
    return {f"the {part}" if part else "an unknown part": found for part, found in counts.items() if any(found)}


def describe_changes(changes: DiagnosisChanges) -> str:
    """Return a sentence on the answers lost and regained, and one on key points, for comparisons and alerts.

    >>> lost = {DiagnosisCause.INDEX: 14, DiagnosisCause.GENERATOR: 2}
    >>> describe_changes(DiagnosisChanges(60, {}, {}, (), lost, {DiagnosisCause.JUDGE: 1}, 0.01))
    'The index lost 14 answers, the generator 2; the judge now accepts 1.'
    >>> describe_changes(DiagnosisChanges(60, {}, {}, (), {}, {DiagnosisCause.GENERATOR: 1}, 1.0))
    'No answer was lost; the generator regained 1. So few changes may be chance.'
    >>> describe_changes(DiagnosisChanges(60, {}, {}, (), {}, {}, 1.0))
    'No answer was lost or regained.'
    >>> points = {DiagnosisCause.INDEX: 9, DiagnosisCause.GENERATOR: 3}
    >>> describe_changes(DiagnosisChanges(60, {}, {}, (), {}, {}, 1.0, points, {DiagnosisCause.GENERATOR: 1}))
    'No answer was lost or regained. The index lost 9 key points, the generator 3; the generator regained 1.'
    """
    sentences = ["No answer was lost or regained."]
    if changes.lost or changes.regained:
        sentences = [_describe(changes.lost, changes.regained, "answer")]
        sentences += [] if changes.is_clear else ["So few changes may be chance."]
    if changes.lost_points or changes.regained_points:
        sentences.append(_describe(changes.lost_points, changes.regained_points, "key point"))
    return " ".join(sentences)


def _describe(lost: Mapping[DiagnosisCause, int], regained: Mapping[DiagnosisCause, int], noun: str) -> str:
    losses = _enumerate(lost, _LOST, noun) or f"no {noun} was lost"
    sentence = "; ".join(filter(None, (losses, _enumerate(regained, _REGAINED))))
    return f"{sentence[0].upper()}{sentence[1:]}."


_LOST = {
    DiagnosisCause.INDEX: ("the index lost", "the index"),
    DiagnosisCause.GENERATOR: ("the generator lost", "the generator"),
    DiagnosisCause.JUDGE: ("the judge no longer accepts", "the judge no longer accepts"),
    DiagnosisCause.TEST: ("another question or reference cost", "another question or reference"),
}
_REGAINED = {
    DiagnosisCause.INDEX: ("the index regained", "the index"),
    DiagnosisCause.GENERATOR: ("the generator regained", "the generator"),
    DiagnosisCause.JUDGE: ("the judge now accepts", "the judge now accepts"),
    DiagnosisCause.TEST: ("another question or reference regained", "another question or reference"),
}


def _enumerate(
    counts: Mapping[DiagnosisCause, int], words: Mapping[DiagnosisCause, tuple[str, str]], noun: str = ""
) -> str:
    """Return the counts in words: the verb is repeated only where it changes, the noun never."""
    parts: list[str] = []
    for cause in sorted(counts, key=list(DiagnosisCause).index):
        first, later = words[cause]
        if not parts:
            parts.append(f"{first} {counts[cause]}" + (f" {noun}{'s' * (counts[cause] != 1)}" if noun else ""))
        else:
            parts.append(f"{later} {counts[cause]}")
    return ", ".join(parts)


def _find_cause(
    before: DiagnosisClass | None, after: DiagnosisClass | None, differing: frozenset[str]
) -> DiagnosisCause:
    first, last = (None if each is None else each.part for each in (before, after))
    part = last if after is not None and after.is_lost else first
    if part is None:  # neither is a lost answer: only the ranking, or what is known, changed
        part = last or first
    return _cause_of(part, differing)


def _causes(
    lost: Mapping[str, str | None], known: Collection[str], differing: frozenset[str]
) -> Iterator[DiagnosisCause]:
    """Yield the cause of each point that only one run lacks.

    Args:
        lost: Key point -> the part that lost it, in that run.
        known: Key points that the other run lacks.
    """
    return (_cause_of(part, differing) for point, part in lost.items() if point not in known)


def _cause_of(part: str | None, differing: frozenset[str]) -> DiagnosisCause:
    if not differing.isdisjoint(TEST_COLUMNS):
        return DiagnosisCause.TEST
    if differing.isdisjoint({c.RESPONSE, c.RETRIEVED_CONTEXTS}):
        return DiagnosisCause.JUDGE
    if part == SystemPart.INDEX and c.RETRIEVED_CONTEXTS in differing:
        return DiagnosisCause.INDEX
    return DiagnosisCause.GENERATOR if c.RESPONSE in differing else DiagnosisCause.INDEX


def _is_loss(before: DiagnosisClass | None, after: DiagnosisClass | None) -> bool | None:
    if before is None or after is None or before.is_lost == after.is_lost:
        return None
    return after.is_lost


def _count(changes: Iterable[DiagnosisChange], *, is_loss: bool) -> dict[DiagnosisCause, int]:
    counts = Counter[DiagnosisCause]()
    for change in changes:
        if change.is_loss is is_loss:
            counts[change.cause] += change.count
    return dict(counts)


def _read(rows: RunRows) -> dict[str, tuple[str, Mapping[str, str | None] | None, str | None]] | None:
    """Return the diagnosis of each row by its name, with the key points that it lacks, and the digest of all.

    Returns:
        The diagnoses; None if the run has none.
    """
    path = Path(rows.run.folder) / DIAGNOSIS
    if not path.exists():
        return None
    try:
        names = pq.read_schema(path).names
        columns = ["row_id", "diagnosis", *(name for name in ("lost_points", "points_digest") if name in names)]
        found = pq.read_table(path, columns=columns, partitioning=None).to_pylist()
    except (pa.ArrowException, OSError, KeyError) as error:
        raise RunFolderError(
            f"the diagnoses {path} cannot be read ({error}). Evaluate the source again with `assay run`, or delete the "
            "file to compare without diagnoses."
        ) from error
    known = _known_classes(rows)
    return {
        rows.keys[row["row_id"]]: (
            row["diagnosis"] if row["diagnosis"] in known else UNDIAGNOSED,
            _points(row.get("lost_points")),
            row.get("points_digest"),
        )
        for row in found
        if row["row_id"] in rows.keys
    }


def _known_classes(rows: RunRows) -> dict[str, DiagnosisClass]:
    """Return the classes of every run and of this one by name."""
    found = rows.run.summary.find(DiagnosisCounts)
    own = (each for each in (() if found is None else found.classes) if each.name != UNDIAGNOSED)
    classes = (
        DiagnosisClass(name=each.name, meaning=each.meaning, part=each.part, is_lost=each.is_lost) for each in own
    )
    return {each.name: each for each in (*CLASSES, *classes)}


def _points(lost: Iterable[Mapping[str, str | None]] | None) -> Mapping[str, str | None] | None:
    return None if lost is None else {str(point["claim_id"]): point["part"] for point in lost}
