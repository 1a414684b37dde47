"""Count the rows that lack a value, and the texts that mean a missing value, and describe them in warnings."""

from collections import Counter
from collections.abc import Iterator, Mapping

from tasks.sources.readers.bad_rows import MISSING_TEXTS_HINT

_METRICS_NAMED = 3


class MissingValues:
    """The missing values of the rows read so far.

    Args:
        needed_by: Mapping from sample column to the metrics that need it.
        text_cells: If true, a text that means a missing value is read as one; else it is a text, and suspicious.
    """

    def __init__(self, needed_by: Mapping[str, tuple[str, ...]], *, text_cells: bool) -> None:
        self._needed_by = needed_by
        self._text_cells = text_cells
        self._rows_without: Counter[str] = Counter()
        self._texts: dict[str, Counter[str]] = {}

    def add_text(self, column: str, text: str) -> None:
        """Count a text that means a missing value."""
        self._texts.setdefault(column, Counter())[text] += 1

    def add_row(self, values: Mapping[str, object]) -> None:
        """Count a row by the columns that it lacks and that metrics need."""
        for column in self._needed_by:
            if values.get(column) is None:
                self._rows_without[column] += 1

    def sentences(self, rows: int) -> Iterator[str]:
        """Yield a sentence per column.

        Args:
            rows: Number of rows that are evaluated.
        """
        for column, texts in self._texts.items():
            count = sum(texts.values())
            found = ", ".join(map(repr, texts))
            if self._text_cells:
                cells = "1 cell" if count == 1 else f"{count:,} cells"
                yield f"read as missing values: {cells} of {column} ({found}); {MISSING_TEXTS_HINT}"
            else:
                values = "1 value" if count == 1 else f"{count:,} values"
                yield f"evaluated as texts, although they may mean missing values: {values} of {column} ({found})"
        for column, count in self._rows_without.items():
            share = f"none of the {rows:,} rows has a" if count == rows else f"{count:,} of {rows:,} rows have no"
            yield f"{share} value in {column}: {self._name_metrics(column)} undefined there"

    def _name_metrics(self, column: str) -> str:
        metrics = self._needed_by[column]
        names = list(metrics[:_METRICS_NAMED])
        if len(metrics) > _METRICS_NAMED:
            names.append(f"{len(metrics) - _METRICS_NAMED} more")
        *first, last = names
        return f"{', '.join(first)} and {last} are" if first else f"{last} is"
