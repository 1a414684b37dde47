"""Warn about follow-up questions that are judged as they are, because the judge gave no self-contained one."""

from collections import Counter
from collections.abc import Iterable

from metric_core.stages import Stage
from tasks.tables.table_store import StageRef, read


def follow_up_warnings(refs: Iterable[StageRef]) -> list[str]:
    """Return a sentence about the follow-up questions of a run that are judged as they are, if there are any.

    Args:
        refs: Tables of all stages and shards.
    """
    rows, reasons = 0, Counter[str]()
    for ref in refs:
        if ref.stage is Stage.FOLLOW_UPS and ref.rows:
            found = read(ref, ["question", "reason"]).to_pylist()
            rows += len(found)
            reasons.update(row["reason"] or "no reason given" for row in found if row["question"] is None)
    kept = reasons.total()
    if not kept:
        return []
    why = "; ".join(f"{reason} ({count:,})" for reason, count in reasons.most_common())
    sentence = (
        f"{kept:,} of {rows:,} questions that follow others are judged as they are, because the judge gave no "
        f"self-contained one: {why}"
    )
    return [sentence]
