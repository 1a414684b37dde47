"""Describe the diagnosis of a run for the report and for terminals: counts of the classes, and the class of rows."""

from collections import Counter
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from metric_core.declarations.diagnosis_class import SystemPart
from metric_core.diagnosis.classes import UNDIAGNOSED
from metric_core.errors import RunFolderError
from tasks.findings.diagnosis.diagnosis_counts import ClassCount, DiagnosisCounts
from tasks.runs.run_folder import DIAGNOSIS
from tasks.runtime.wording import format_percent

_UNDIAGNOSED_MEANING = "The run has not enough verdicts to say what happened."
_FORMS = "by a list of forms"
_BY = {"judge": "by the judge", "forms": _FORMS}
_BATCH_ROWS = 65_536


def diagnosis_view(diagnosis: DiagnosisCounts | None) -> dict[str, Any] | None:
    """Return the diagnosis for the page; None for a run without one, or without any row that could be diagnosed."""
    if diagnosis is None or _counts(diagnosis) is None:
        return None
    shown = sorted(diagnosis.classes, key=lambda found: (found.name == UNDIAGNOSED, -found.count))
    refusals = diagnosis.refusals
    return {
        "classes": [_class_view(found) for found in shown if found.count or found.name != UNDIAGNOSED],
        "names": [found.name for found in shown if found.count],
        "reasons": list(diagnosis.reasons.items()),
        "lacking": list(diagnosis.lacking.items()),
        "refusals": refusals.rows,
        "refusal_kinds": [(kind, count) for kind, count in refusals.kinds.items() if count],
        "recognized": _BY.get(refusals.recognized_by, _FORMS),
        "key_points": key_points_line(diagnosis),
    }


def diagnosis_line(diagnosis: DiagnosisCounts | None, judge: str | None = None) -> str | None:
    """Return how many answers are good, and whose fault the others are; None for a run without a diagnosis.

    The fault is that of this run alone. Only a comparison says which part lost an answer that was good before.

    Args:
        judge: Name of the judge whose verdicts say so; None leaves it out.

    >>> parts = {"answered": None, "contradicted": "generator", "passage missing": "index", "undiagnosed": None}
    >>> counts = zip(parts.items(), (9, 6, 1, 1))
    >>> classes = tuple(
    ...     ClassCount(name=name, count=count, share=0, interval=None, part=part, is_lost=part is not None)
    ...     for (name, part), count in counts
    ... )
    >>> from tasks.findings.diagnosis.diagnosis_counts import RefusalCounts
    >>> refusals = RefusalCounts(rows=0, recognized_by="forms")
    >>> found = DiagnosisCounts(rows=17, classes=classes, reasons={}, lacking={}, refusals=refusals)
    >>> diagnosis_line(found, "Qwen3-8B")
    '9 of 17 answers are good, says Qwen3-8B; 6 are faults of the generator, 1 of the index; 1 undiagnosed'
    """
    if diagnosis is None or _counts(diagnosis) is None:
        return None
    undiagnosed = sum(found.count for found in diagnosis.classes if found.name == UNDIAGNOSED)
    good = sum(found.count for found in diagnosis.classes if found.name != UNDIAGNOSED and not found.is_lost)
    lost: Counter[SystemPart | None] = Counter()
    for found in diagnosis.classes:
        lost[found.part] += found.count if found.is_lost else 0
    by = f", says {judge}" if judge else ""
    words = [f"{good:,} of {diagnosis.rows:,} answers are good{by}", _faults(lost)]
    words += [f"{undiagnosed:,} undiagnosed"] if undiagnosed else []
    return "; ".join(filter(None, words))


def key_points_line(diagnosis: DiagnosisCounts | None) -> str | None:
    """Return how many key points the answers state, and whose fault the others are; None for a run that judged none.

    >>> counts = {"points": 40, "index": 9, "generator": 3, "unknown": 0}
    >>> from tasks.findings.diagnosis.diagnosis_counts import RefusalCounts
    >>> refusals = RefusalCounts(rows=0, recognized_by="forms")
    >>> nothing = {"rows": 0, "classes": (), "reasons": {}, "lacking": {}}
    >>> key_points_line(DiagnosisCounts(**nothing, key_points=counts, refusals=refusals))
    '28 of 40 key points are stated; 9 are faults of the index, 3 of the generator'
    """
    if diagnosis is None or not diagnosis.key_points:
        return None
    counts = dict(diagnosis.key_points)
    total = counts.pop("points")
    stated = f"{total - sum(counts.values()):,} of {total:,} key points are stated"
    return "; ".join(filter(None, (stated, _faults(Counter(counts)))))


def _faults(counts: Counter[SystemPart | None] | Counter[str]) -> str:
    """Return how many faults are of each part, in words; empty without any."""
    parts: list[str] = []
    for part, count in (+counts).most_common():
        verb = "" if parts else "is a fault " if count == 1 else "are faults "
        parts.append(f"{count:,} {verb}of {'an unknown part' if part == 'unknown' else f'the {part}'}")
    return ", ".join(parts)


def class_counts(diagnosis: DiagnosisCounts | None) -> str | None:
    """Return the number of rows of each class that has any, the largest first; None for a run without a diagnosis."""
    counts = None if diagnosis is None else _counts(diagnosis)
    return None if counts is None else ", ".join(f"{count:,} {name}" for name, count in counts.most_common())


def _counts(diagnosis: DiagnosisCounts) -> Counter[str] | None:
    """Return the number of rows of each class that has any; None if no row could be diagnosed."""
    counts = +Counter({found.name: found.count for found in diagnosis.classes})
    return counts if set(counts) - {UNDIAGNOSED} else None


def read_row_diagnoses(
    folder: Path, diagnosis: DiagnosisCounts | None, row_ids: Collection[str]
) -> dict[str, dict[str, Any]]:
    """Return the diagnosis of some rows by row id; empty for a run without any.

    Args:
        diagnosis: Classes of the run.

    Raises:
        RunFolderError: The table of diagnoses is damaged.
    """
    path = folder / DIAGNOSIS
    if not path.exists():
        return {}
    classes = {each.name: each for each in (() if diagnosis is None else diagnosis.classes)}
    ids, found = pa.array(list(row_ids), pa.string()), dict[str, dict[str, Any]]()
    try:
        with pq.ParquetFile(path) as file:
            columns = ["row_id", "diagnosis", "reason", "refusal_kind"]
            for batch in file.iter_batches(_BATCH_ROWS, columns=columns):
                for row in batch.filter(pc.is_in(batch.column("row_id"), value_set=ids)).to_pylist():
                    found[row["row_id"]] = _row_view(row, classes.get(row["diagnosis"]))
    except (pa.ArrowException, OSError, KeyError) as error:
        raise RunFolderError(f"the diagnoses {path} cannot be read ({error}). Run the evaluation again.") from error
    return found


def _row_view(row: Mapping[str, Any], known: ClassCount | None) -> dict[str, Any]:
    kind = row["refusal_kind"]
    meaning = row["reason"] or _UNDIAGNOSED_MEANING if known is None else known.meaning
    return {
        "name": row["diagnosis"] or UNDIAGNOSED,
        "tone": "none" if known is None else _tone(known),
        "meaning": meaning if kind is None else f"{meaning} Kind of refusal: {kind}.",
    }


def _class_view(found: ClassCount) -> dict[str, Any]:
    interval = found.interval
    return {
        "name": found.name,
        "meaning": found.meaning or _UNDIAGNOSED_MEANING,
        "part": found.part,
        "tone": _tone(found),
        "is_lost": found.is_lost or found.name == UNDIAGNOSED,
        "count": found.count,
        "share": format_percent(found.share, 1),
        "interval": None if interval is None else f"{100 * interval.low:.1f} to {format_percent(interval.high, 1)}",
        "width": round(100 * found.share, 2),
    }


def _tone(known: ClassCount) -> str:
    if known.is_lost:
        return "bad2"
    if known.name == UNDIAGNOSED:
        return "none"
    return "good2" if known.part is None else "mid"
