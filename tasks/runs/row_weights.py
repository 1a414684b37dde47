"""Read what each row of a run stands for: a weight of its own, or the share of its slice in the traffic."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

import pyarrow as pa

from metric_core.errors import ConfigError
from tasks.options.grouping_options import INVERSE, TRAFFIC, Traffic
from tasks.runs.row_grouping import ROW_ID, TextColumn, columns_with
from tasks.runtime.wording import format_percent

_BY_CHANCE = 0.001
"""Probability up to which shares of rows are not said to differ from those of the traffic by chance."""


class RowWeights:
    """The weights of the rows of a run, read shard by shard.

    Args:
        weights: Column of weights, column of probabilities after `1/`, or the word for shares of the traffic; None if
            each row counts once.
        traffic: Column -> value -> share of the traffic.

    Raises:
        ConfigError: Weights are to be those of the traffic, and its shares are not those of one column.
    """

    def __init__(self, weights: str | None, traffic: Traffic) -> None:
        self._named, self._traffic = weights, traffic
        if weights == TRAFFIC and len(traffic) != 1:
            raise ConfigError(f"weights: {TRAFFIC} takes the shares of one column, traffic has {len(traffic)}")
        names = [*traffic, *([] if weights is None or weights == TRAFFIC else [weights.removeprefix(INVERSE)])]
        self._columns = {name: TextColumn(name, "rows cannot be weighted") for name in names}
        self._values: dict[str, list[str | None]] = {name: [] for name in names}
        self._rows: list[str] = []

    @property
    def columns(self) -> list[str]:
        """The columns of the samples to read."""
        return columns_with(*self._columns)

    def read(self, shard: pa.Table) -> None:
        """Read the rows of a shard.

        Raises:
            ConfigError: A column holds no single text.
        """
        if self._columns:
            self._rows += shard[ROW_ID].to_pylist()
        for name, column in self._columns.items():
            self._values[name] += [value.strip() if value else None for value in column.read(shard)]

    def by_row(self) -> dict[str, float] | None:
        """Return a mapping from row id to weight, with a mean of 1; None if each row counts once.

        Raises:
            ConfigError: A row has no weight, or one that is no number above 0; a slice has no share or no rows.
        """
        for column in self._columns.values():
            column.require_values()
        if self._named is None or not self._rows:
            return None
        found = self._of_traffic() if self._named == TRAFFIC else self._of_column()
        mean = sum(found) / len(found)
        return {row: weight / mean for row, weight in zip(self._rows, found, strict=True)}

    def _of_column(self) -> list[float]:
        name = str(self._named).removeprefix(INVERSE)
        is_inverse = name != self._named
        wanted = "a probability above 0, at most 1" if is_inverse else "a number above 0"
        weights = []
        for row, text in zip(self._rows, self._values[name], strict=True):
            try:
                number = float(text or "")
            except ValueError:
                number = -1.0
            if not 0 < number < float("inf") or (is_inverse and number > 1):
                got = "nothing" if text is None else repr(text[:40])
                raise ConfigError(f"rows cannot be weighted by {name}: row {row} has {got} there, wanted {wanted}")
            weights.append(1 / number if is_inverse else number)
        return weights

    def _of_traffic(self) -> list[float]:
        [(name, shares)] = self._traffic.items()
        counts = Counter(self._values[name])
        unknown = [value for value in counts if value not in shares]
        if unknown:
            value = unknown[0]
            what = f"without a {name}" if value is None else f"of {name} {value}"
            raise ConfigError(f"{counts[value]} rows {what} have no share of the traffic: state it in traffic")
        if lacking := [value for value in shares if value not in counts]:
            share = format_percent(shares[lacking[0]])
            raise ConfigError(f"no row stands for {name} {lacking[0]}, {share} of the traffic: add rows like it")
        return [shares[str(value)] / counts[value] for value in self._values[name]]

    def warn(self) -> Iterator[str]:
        """Yield a sentence per column of the traffic whose shares the rows do not have, unless they are weighted."""
        if self._named is not None or not self._rows:
            return
        from scipy.special import chdtrc  # noqa: PLC0415 scipy loads slowly

        for name, shares in self._traffic.items():
            counts, rows = Counter(self._values[name]), len(self._rows)
            gaps = {value: counts[value] / rows - share for value, share in shares.items()}
            others = rows - sum(counts[value] for value in shares)
            square = sum(rows * gap**2 / shares[value] for value, gap in gaps.items())
            if not others and (len(shares) < 2 or chdtrc(len(shares) - 1, square) > _BY_CHANCE):
                continue
            value = max(gaps, key=lambda value: abs(gaps[value]))
            of_rows, of_traffic = format_percent(counts[value] / rows), format_percent(shares[value])
            yield (
                f"{of_rows} of the rows have {name} {value}, {of_traffic} of the traffic: means are those of these "
                f"rows, not of the traffic (weights: {TRAFFIC} weights them)"
            )


def read_weights(shards: Iterable[pa.Table], weights: str | None, traffic: Traffic) -> dict[str, float] | None:
    """Return a mapping from row id to weight; None if each row counts once.

    Raises:
        ConfigError: Rows cannot be weighted.
    """
    if weights is None:
        return None
    found = RowWeights(weights, traffic if weights == TRAFFIC else {})
    for shard in shards:
        found.read(shard)
    return found.by_row()


def weights_in_order(rows: Iterable[str], weights: Mapping[str, float] | None) -> list[float]:
    """Return the weight of each row; none if each counts once."""
    return [] if weights is None else [weights[row] for row in rows]
