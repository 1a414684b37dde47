"""Notice rankings that disagree with what is known about them: with their judgments, or with their own scores."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from metric_core.columns import (
    REFERENCE_CONTEXT_IDS,
    RELEVANCE_JUDGMENTS,
    RETRIEVED_CONTEXT_IDS,
    RETRIEVED_CONTEXT_SCORES,
)
from tasks.runtime.wording import quote_names

_NAMED = 2


class RankingChecks:
    """Counts of the rows read so far whose ranking agrees with its judgments, and whose scores rise along it."""

    def __init__(self) -> None:
        self._judged_rows = 0
        self._judged: dict[str, None] = {}
        self._retrieved: dict[str, None] = {}
        self._has_met = False
        self._rising = 0

    def add(self, values: Mapping[str, Any]) -> None:
        """Look at the columns of a row."""
        ids: Sequence[str] = values.get(RETRIEVED_CONTEXT_IDS) or ()
        judged = [each["id"] for each in values.get(RELEVANCE_JUDGMENTS) or ()]
        if ids and judged and not self._has_met:
            self._has_met = not set(ids).isdisjoint(judged)
            self._judged_rows += 1
            for names, found in ((self._judged, judged), (self._retrieved, ids)):
                names.update(dict.fromkeys(found[: max(0, _NAMED - len(names))]))
        if judged or values.get(REFERENCE_CONTEXT_IDS):  # else nothing reads the order
            self._rising += _rises(values.get(RETRIEVED_CONTEXT_SCORES) or ())

    def sentences(self) -> Iterator[str]:
        """Yield a sentence for each disagreement."""
        if self._judged_rows and not self._has_met:
            rows = "the only row" if self._judged_rows == 1 else f"any of {self._judged_rows:,} rows"
            yield (
                f"none of the judged passages is among the retrieved ones in {rows}: judged are "
                f"{quote_names(self._judged)} and so on, retrieved {quote_names(self._retrieved)} and so on; check "
                "that both are ids of the same index, and which column holds the passages"
            )
        if self._rising:
            rows = "1 row" if self._rising == 1 else f"{self._rising:,} rows"
            yield (
                f"the scores rise along the ranking in {rows}: the order of the passages counts, not their scores, as "
                "is right for distances"
            )


def _rises(scores: Sequence[float | None]) -> bool:
    """Return whether scores rise from the first to the last, and never fall."""
    known = [score for score in scores if score is not None]
    return len(known) > 1 and known[0] < known[-1] and known == sorted(known)
