"""Draw rows of a run for people to label, each with a known probability."""

import math
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from metric_core.errors import ConfigError
from metric_core.records import Status
from metric_core.stages import Stage
from metric_core.statistics.resampling import SEED
from tasks.calibration.label_pairing import PROBABILITY_COLUMN, STRATUM_COLUMN, group_of_cell
from tasks.comparison.run_pair import Matching, RunRows
from tasks.runs.finished_run import FinishedRun

SHOWN = ("user_input", "retrieved_contexts", "response", "reference")
"""Sample columns that people see. The scores are left out: they would influence the labels."""

MOST_STRATA = 20
_LEAST_OF_STRATUM = 2
_LEAST_SPREAD = 0.2
"""Least standard deviation that the labels of a stratum are assumed to have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleOptions:
    """Options of a sample of rows.

    Args:
        rows: Number of rows to draw, at least 1.
        label: Name of the empty column for the labels.
        metric: Key of a metric: only rows with a score of it are drawn. None draws from all rows.
        by: Column that groups rows: at most one row per group is drawn, since labels of rows that belong together say
            less than those of others. None draws rows independently.
        strata: Number of parts of the metric's range. Rows are drawn from each separately, more from those where the
            labels are more uncertain. None draws from all rows at once.
    """

    rows: int
    label: str = "label"
    metric: str | None = None
    by: str | None = None
    strata: int | None = None
    seed: int = SEED


def sample_rows(run: Path, options: SampleOptions) -> pa.Table:
    """Draw rows of a run at random, and return them in random order with an empty column for the labels.

    People can stop anywhere: the rows labelled so far are a random sample, too.

    Raises:
        RunFolderError: The folder does not hold a finished run.
        ConfigError: There are too few rows or groups, the metric or the column is unknown, or the name of the labels is
            taken.
    """
    label, by = options.label, options.by
    finished = FinishedRun(run)
    samples = pa.concat_tables(finished.samples())
    ids: list[str] = samples["row_id"].to_pylist()
    if options.strata is not None and (options.metric is None or by is not None):
        problem = "need --metric, whose scores divide the rows" if by is None else "cannot be drawn together with --by"
        raise ConfigError(f"strata {problem}")
    if options.strata is not None and not 2 <= options.strata <= MOST_STRATA:
        raise ConfigError(f"wanted 2 to {MOST_STRATA} strata, got {options.strata}")
    if label in (*SHOWN, "id", PROBABILITY_COLUMN, STRATUM_COLUMN):
        raise ConfigError(
            f"the labels cannot have the name {label!r}, which is that of another column; name another one"
        )
    scores = None if options.metric is None else _scores(finished, options.metric, ids)
    generator = np.random.default_rng(options.seed)
    strata: Mapping[str, str] | None = None
    if scores is not None and options.strata is not None:
        bounds = _bounds(finished, options)
        drawn, strata = draw_from_strata(_numbers(scores), options.rows, options.strata, bounds, generator)
    else:
        groups = None if by is None else RunRows.from_run(finished, Matching(by=by)).groups
        drawn = draw(ids if scores is None else list(scores), options.rows, groups, generator)
    place = {row_id: number for number, row_id in enumerate(ids)}
    chosen = samples.take([place[row_id] for row_id in drawn])
    table = pa.table({"id": chosen["row_id"], **{name: chosen[name] for name in SHOWN}})
    table = table.append_column(label, pa.nulls(len(drawn), pa.string()))
    table = table.append_column(PROBABILITY_COLUMN, pa.array(list(drawn.values()), pa.float64()))
    if strata is None:
        return table
    return table.append_column(STRATUM_COLUMN, pa.array([strata[row_id] for row_id in drawn], pa.string()))


def draw(
    rows: Sequence[str], count: int, groups: Mapping[str, str] | None, generator: np.random.Generator
) -> dict[str, float]:
    """Draw rows at random, at most one per group, in random order.

    Args:
        rows: Ids of the rows to draw from.
        groups: Group of each row, for rows that have one; None draws rows independently.

    Returns:
        A mapping from the id of each drawn row to the probability with which it was drawn.

    Raises:
        ConfigError: There are fewer rows or groups than rows to draw.

    >>> groups = {"a": "x", "b": "x", "c": "y"}
    >>> sorted(draw(["a", "b", "c"], 2, groups, np.random.default_rng(1)).values())
    [0.5, 1.0]
    """
    members: dict[str, list[str]] = {}
    for row_id in rows:
        members.setdefault(group_of_cell(row_id, None if groups is None else groups.get(row_id)), []).append(row_id)
    if not 1 <= count <= len(members):
        noun = "rows" if groups is None else "groups of rows"
        raise ConfigError(f"cannot draw {count} rows: there are {len(members)} {noun} to draw from")
    names = list(members)
    drawn = {}
    for number in generator.permutation(len(names))[:count]:
        group = members[names[number]]
        drawn[group[int(generator.integers(len(group)))]] = count / len(names) / len(group)
    return drawn


def draw_from_strata(
    scores: Mapping[str, float],
    count: int,
    strata: int,
    bounds: tuple[float, float],
    generator: np.random.Generator,
) -> tuple[dict[str, float], dict[str, str]]:
    """Draw rows at random from each part of the range of the scores, in random order.

    A part gets rows in proportion to its size and to the standard deviation that its labels would have if its mean
    score were the share of good rows, but at least 0.2 (Neyman 1934): a judge is wrong on high scores, too.

    Args:
        strata: Number of equal parts of the range.
        bounds: Least and greatest possible score.

    Returns:
        Mappings from the id of each drawn row to the probability with which it was drawn, and to the name of its
        stratum, a letter that does not reveal the score.

    Raises:
        ConfigError: There are fewer rows than rows to draw, or fewer to draw than two per stratum.

    >>> from collections import Counter
    >>> scores = {f"row {i}": float(i >= 20) for i in range(100)}
    >>> drawn, strata = draw_from_strata(scores, 20, 4, (0.0, 1.0), np.random.default_rng(1))
    >>> sorted(Counter(strata.values()).values()), sorted(set(drawn.values()))
    ([4, 16], [0.2])
    """
    if not 1 <= count <= len(scores):
        raise ConfigError(f"cannot draw {count} rows: there are {len(scores)} rows to draw from")
    low, width = bounds[0], bounds[1] - bounds[0]
    parts: dict[int, list[str]] = {}
    for row_id, score in scores.items():
        share = (score - low) / width if width > 0 else 0.0
        parts.setdefault(min(strata - 1, max(0, int(share * strata))), []).append(row_id)
    members = [parts[number] for number in sorted(parts)]
    if count < min(_LEAST_OF_STRATUM * len(members), len(scores)):
        raise ConfigError(
            f"cannot draw {count} rows from {len(members)} strata: draw at least {_LEAST_OF_STRATUM} of each, or name "
            "fewer strata"
        )
    means = [float(np.clip((np.mean([scores[row] for row in rows]) - low) / (width or 1.0), 0, 1)) for rows in members]
    spread = [max(_LEAST_SPREAD, math.sqrt(mean * (1 - mean))) for mean in means]
    numbers = _allocate([len(rows) for rows in members], spread, count)
    letters = generator.permutation(list(string.ascii_uppercase[: len(members)]))
    drawn, stratum = {}, {}
    for letter, rows, number in zip(letters, members, numbers, strict=True):
        for place in generator.permutation(len(rows))[:number]:
            drawn[rows[place]], stratum[rows[place]] = number / len(rows), str(letter)
    order = [list(drawn)[place] for place in generator.permutation(len(drawn))]
    return {row_id: drawn[row_id] for row_id in order}, stratum


def _allocate(sizes: Sequence[int], spread: Sequence[float], count: int) -> list[int]:
    """Return how many rows to draw from each stratum: in proportion to size times spread, at least two, at most all."""
    numbers = [min(size, _LEAST_OF_STRATUM) for size in sizes]
    for _ in range(count - sum(numbers)):
        wanted = [
            size * deviation / (number + 1) if number < size else 0.0
            for size, deviation, number in zip(sizes, spread, numbers, strict=True)
        ]
        numbers[int(np.argmax(wanted))] += 1
    return numbers


def _bounds(run: FinishedRun, options: SampleOptions) -> tuple[float, float]:
    """Return the range of a metric that a run has."""
    bounds = next(entry.get("bounds") for entry in run.manifest["metrics"] if entry["key"] == options.metric)
    if bounds is None:
        raise ConfigError(f"the metric {options.metric} has no range that could be divided into strata")
    return float(bounds[0]), float(bounds[1])


def _numbers(scores: Mapping[str, float | None]) -> dict[str, float]:
    numbers = {row_id: score for row_id, score in scores.items() if score is not None}
    if len(numbers) < len(scores):
        raise ConfigError("rows cannot be drawn from strata of a metric whose values are categories")
    return numbers


def _scores(run: FinishedRun, metric: str, ids: Sequence[str]) -> dict[str, float | None]:
    """Return the score of each row that a metric has scored; None for categories."""
    known = [entry["key"] for entry in run.manifest["metrics"]]
    if metric not in known:
        raise ConfigError(f"the run {run.folder} has no metric {metric!r}; it has: {', '.join(known)}")
    cells = run.rows(Stage.AGGREGATION, ids).to_pylist()
    return {
        cell["row_id"]: cell["value"] for cell in cells if cell["metric"] == metric and cell["status"] == Status.SCORED
    }
