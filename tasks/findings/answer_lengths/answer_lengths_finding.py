"""Warn of differences between two runs that the lengths of their answers may explain."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow.compute as pc

from metric_core.columns import RESPONSE
from metric_core.statistics.answer_lengths import LengthEffect, find_length_effect
from metric_core.statistics.comparison import ChangeOutcome, MetricComparison
from tasks.comparison.run_comparison import RunComparison
from tasks.comparison.run_pair import RunRows
from tasks.findings.comparison import ComparedRows, FindingComparison
from tasks.findings.finding import Finding
from tasks.runs.row_grouping import ROW_ID

_CLEAR = (ChangeOutcome.BETTER, ChangeOutcome.WORSE, ChangeOutcome.DIFFERENT)


@dataclass(frozen=True, slots=True)
class ComparedLengths:
    """Metrics whose difference the lengths of the answers may explain.

    Args:
        effects: Metric -> answers of different lengths with different scores.
    """

    entry: ClassVar[str] = "answer_lengths"

    effects: dict[str, LengthEffect]

    def to_json(self) -> dict[str, Any]:
        """Return the entry."""
        return {metric: asdict(effect) for metric, effect in self.effects.items()}


def compare(rows: ComparedRows) -> ComparedLengths | None:
    """Return the metrics whose difference the lengths may explain; None without any."""
    clear = [each for each in rows.metrics if each.verdict in _CLEAR]
    if not clear or rows.pair.a is None:
        return None
    lengths = [_lengths(side) for side in (rows.pair.a, rows.pair.b)]
    found = {}
    for each in clear:
        pairs, _ = rows.pairs_of(each)
        chosen = [place for place, row in enumerate(pairs.rows) if all(row in of for of in lengths)]
        before, after = (np.array([of[pairs.rows[place]] for place in chosen], dtype=np.float64) for of in lengths)
        groups = None if pairs.groups is None else [pairs.groups[place] for place in chosen]
        weights = None if pairs.weights is None else pairs.weights[chosen]
        effect = find_length_effect((pairs.a[chosen], pairs.b[chosen]), (before, after), groups, weights)
        if effect is not None:
            found[_label(each)] = effect
    return ComparedLengths(found) if found else None


def _label(compared: MetricComparison) -> str:
    return compared.metric if compared.scale is None else f"{compared.metric} on {compared.scale}"


def _lengths(rows: RunRows) -> dict[str, float]:
    """Return the number of characters of each answer."""
    found = {}
    for shard in rows.samples():
        lengths = pc.utf8_length(shard[RESPONSE]).to_pylist()
        found.update({row: count for row, count in zip(shard[ROW_ID].to_pylist(), lengths, strict=True) if count})
    return found


def sentences(comparison: RunComparison) -> Iterator[str]:
    """Yield a sentence on the metrics whose difference the lengths may explain."""
    found = comparison.find(ComparedLengths)
    if found is None:
        return
    first = next(iter(found.effects.values()))
    longer = "longer" if first.after > first.before else "shorter"
    differences = {_label(each): each.difference.mean for each in comparison.metrics if each.difference}
    shares = [
        f"{metric} (about {effect.explained:+.3f} of {differences[metric]:+.3f})"
        for metric, effect in found.effects.items()
    ]
    yield (
        f"answers of B are {longer} (median {first.after:,.0f} characters, {first.before:,.0f} in A), and in both runs "
        f"scores go with the length: {', '.join(shares)}"
    )
    yield "a judge that errs on long answers would show such a difference, too; labels of rows of both runs can tell"


FINDING = Finding(comparison=FindingComparison(compare=compare, sentences=sentences))
