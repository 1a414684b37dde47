"""Draw rows or single claims of a run for people to label, each with a known probability."""

import hashlib
import math
import string
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from metric_core.errors import ConfigError
from metric_core.statistics.bounded_means import LEAST_UNITS
from metric_core.statistics.resampling import SEED
from tasks.calibration.label_items import LabelItem, digest_frame, list_rows, list_verdicts, read_texts
from tasks.calibration.label_pairing import PROBABILITY_COLUMN, STRATUM_COLUMN, group_of_cell
from tasks.comparison.run_pair import Matching, RunRows
from tasks.runs.finished_run import FinishedRun

SHOWN = ("user_input", "retrieved_contexts", "response", "reference")
"""Sample columns that people see. The scores are left out: they would influence the labels."""

MOST_STRATA = 20
_LEAST_OF_STRATUM = 2
_LEAST_SPREAD = 0.2
"""Least standard deviation that the labels of a stratum are assumed to have."""
_ACTIVE_STRATA = 10
_LABELS_OF_STRATUM = 10
"""Number of labels per stratum, on average, of an active choice; each has at least half of it."""


USUAL_BUDGET = 100
"""Number of rows or claims that are drawn unless another is given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleOptions:
    """Options of a sample.

    Args:
        metric: Key of the metric that the labels are about: only what it has scored is drawn.
        budget: Number of rows or claims to draw, at least 1; None draws `USUAL_BUDGET`, or all if there are fewer.
        is_claims: True to draw single claims or passages that the metric reads verdicts on, False to draw rows.
        by: Column that groups rows: at most one row per group is drawn, since labels of rows that belong together say
            less than those of others. None draws rows independently.
        strata: Number of parts of the metric's range. Items are drawn from each separately, more from those where the
            labels are more uncertain. None draws from all at once.
        is_active: True to draw from strata of the judge's probability, more from those where it is unsure, or where the
            judges of a panel disagree.
        is_surest: True to draw nearly all claims from the surer half of the verdicts of the cheaper judge of a cascade:
            the verdicts that it may give alone.
    """

    metric: str
    budget: int | None = None
    is_claims: bool = False
    by: str | None = None
    strata: int | None = None
    is_active: bool = False
    is_surest: bool = False
    seed: int = SEED


@dataclass(frozen=True)
class DrawnSample:
    """Rows or claims to label, in random order: people can stop anywhere, what is labelled by then is a sample, too.

    Args:
        probabilities: Probability with which each item was drawn; None if they were not chosen by chance.
        strata: Name of the stratum of each item, a letter that does not reveal the score; None without strata.
        frame: Digest of all items that could have been drawn.
        whole: Digest of the sample that this is a part of; empty if it is whole.
    """

    items: tuple[LabelItem, ...]
    probabilities: tuple[float, ...] | None
    strata: tuple[str, ...] | None
    frame: str
    whole: str = ""

    @property
    def drawn(self) -> tuple[tuple[str, float | None, str | None], ...]:
        """Digest of each item, its probability and its stratum, in order."""
        nothing = (None,) * len(self.items)
        digests = (item.digest for item in self.items)
        return tuple(zip(digests, self.probabilities or nothing, self.strata or nothing, strict=True))

    @cached_property
    def digest(self) -> str:
        """Digest of the whole sample: items, probabilities and strata."""
        if self.whole:
            return self.whole
        facts = (self.frame, [item.digest for item in self.items], self.probabilities, self.strata)
        return hashlib.sha256(repr(facts).encode()).hexdigest()[:16]


def list_items(run: FinishedRun, metric: str, *, is_claims: bool, has_beliefs: bool = False) -> list[LabelItem]:
    """Return what people can label for a metric.

    Args:
        has_beliefs: True if the probabilities of rows are needed, too.

    Raises:
        ConfigError: The run has no such metric, or its values are not numbers, or not means of verdicts.
    """
    if not is_claims and not has_beliefs:
        return list_rows(run, metric)
    found = next((request for request in run.requests if request.key == metric), None)
    return list_rows(run, metric, found) if found is None or not is_claims else list_verdicts(run, found)


def draw_sample(run: FinishedRun, options: SampleOptions) -> DrawnSample:
    """Draw rows or claims of a run at random.

    Raises:
        RunFolderError: The folder does not hold a finished run.
        ConfigError: There are too few rows, claims or groups, the metric or the column is unknown, or the options
            exclude each other.
    """
    strata = options.strata
    if sum((options.strata is not None, options.is_active, options.is_surest, options.by is not None)) > 1:
        raise ConfigError(
            "rows are drawn by strata, actively, where a cascade is surest, or one per group: name one of --strata, "
            "--active, --surest, --by"
        )
    if options.is_surest and (run.record.cascade is None or not options.is_claims):
        raise ConfigError("--surest is for --claims of a run with a cascade: its labels say how sure it must be")
    items = list_items(run, options.metric, is_claims=options.is_claims, has_beliefs=options.is_active)
    of_digest: dict[str, LabelItem] = {}
    for item in items:
        of_digest.setdefault(item.digest, item)
    budget = min(USUAL_BUDGET, len(of_digest)) if options.budget is None else options.budget
    if options.is_active:
        strata = active_strata(budget)
    if strata is not None and not 2 <= strata <= MOST_STRATA:
        raise ConfigError(f"wanted 2 to {MOST_STRATA} strata, got {strata}")
    generator = np.random.default_rng(options.seed)
    names = None
    if strata is not None:
        scores = {digest: item.belief if options.is_active else item.score for digest, item in of_digest.items()}
        drawn, names = draw_from_strata(scores, budget, strata, generator, is_active=options.is_active)
    elif options.is_surest and run.record.cascade is not None:
        cheaper = run.record.cascade.name
        drawn, names = draw_surest({of.digest: of.sureness(cheaper) for of in items}, budget, generator)
    else:
        rows = None if options.by is None else RunRows.from_run(run, Matching(by=options.by)).groups
        groups = None if rows is None else {of.digest: rows[of.row_id] for of in items if of.row_id in rows}
        drawn = draw(list(of_digest), budget, groups, generator)
    return DrawnSample(
        items=tuple(of_digest[digest] for digest in drawn),
        probabilities=tuple(drawn.values()),
        strata=None if names is None else tuple(names[digest] for digest in drawn),
        frame=digest_frame(items),
    )


def active_strata(budget: int) -> int:
    """Return the number of strata of an active choice of so many items.

    >>> active_strata(30), active_strata(100)
    (3, 10)
    """
    return max(_LEAST_OF_STRATUM, min(_ACTIVE_STRATA, budget // _LABELS_OF_STRATUM))


def sample_table(run: FinishedRun, sample: DrawnSample, label: str) -> pa.Table:
    """Return drawn rows as a table with an empty column for the labels.

    Raises:
        ConfigError: The name of the labels is taken.
    """
    if label in (*SHOWN, "id", PROBABILITY_COLUMN, STRATUM_COLUMN):
        raise ConfigError(
            f"the labels cannot have the name {label!r}, which is that of another column; name another one"
        )
    texts = read_texts(run, sample.items)
    shown = [texts[item.key] for item in sample.items]
    columns = {
        "id": [item.row_id for item in sample.items],
        "user_input": [each.question for each in shown],
        "retrieved_contexts": [each.passages for each in shown],
        "response": [each.answer for each in shown],
        "reference": [each.reference for each in shown],
    }
    table = pa.table(columns).append_column(label, pa.nulls(len(shown), pa.string()))
    if sample.probabilities is not None:
        table = table.append_column(PROBABILITY_COLUMN, pa.array(sample.probabilities, pa.float64()))
    return table if sample.strata is None else table.append_column(STRATUM_COLUMN, pa.array(sample.strata))


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
    scores: Mapping[str, float], count: int, strata: int, generator: np.random.Generator, *, is_active: bool = False
) -> tuple[dict[str, float], dict[str, str]]:
    """Draw rows at random from each part of the range of the scores, in random order.

    A part gets rows in proportion to its size and to the standard deviation that its labels would have if its mean
    score were the share of good rows, but at least 0.2 (Neyman 1934): a judge is wrong on high scores, too.

    Args:
        scores: Row id -> score, from 0 to 1.
        strata: Number of equal parts of that range.
        is_active: True to draw from parts with equally many rows instead, at least five of each if possible.

    Returns:
        Mappings from the id of each drawn row to the probability with which it was drawn, and to the name of its
        stratum, a letter that does not reveal the score.

    Raises:
        ConfigError: There are fewer rows than rows to draw, or fewer to draw than two per stratum.

    >>> from collections import Counter
    >>> scores = {f"row {i}": float(i >= 20) for i in range(100)}
    >>> drawn, strata = draw_from_strata(scores, 20, 4, np.random.default_rng(1))
    >>> sorted(Counter(strata.values()).values()), sorted(set(drawn.values()))
    ([4, 16], [0.2])
    """
    if not 1 <= count <= len(scores):
        raise ConfigError(f"cannot draw {count} rows: there are {len(scores)} rows to draw from")
    ranks = _ranks(scores) if is_active else scores
    parts: dict[int, list[str]] = {}
    for row_id in scores:
        parts.setdefault(min(strata - 1, int(ranks[row_id] * strata)), []).append(row_id)
    members = [parts[number] for number in sorted(parts)]
    if count < min(_LEAST_OF_STRATUM * len(members), len(scores)):
        raise ConfigError(
            f"cannot draw {count} rows from {len(members)} strata: draw at least {_LEAST_OF_STRATUM} of each, or name "
            "fewer strata"
        )
    means = [float(np.mean([scores[row] for row in rows])) for rows in members]
    spread = [max(_LEAST_SPREAD, math.sqrt(max(0.0, mean * (1 - mean)))) for mean in means]
    least = min(_LABELS_OF_STRATUM // 2, count // len(members)) if is_active else _LEAST_OF_STRATUM
    numbers = _allocate([len(rows) for rows in members], spread, count, least)
    return _draw_parts(members, numbers, generator)


def draw_surest(
    sureness: Mapping[str, float], count: int, generator: np.random.Generator
) -> tuple[dict[str, float], dict[str, str]]:
    """Draw claims at random from the surer half of verdicts, and a few from the other half, in random order.

    The few let the labels say something of the mean of the run, too.

    Args:
        sureness: Digest of each claim -> a judge's probability of its own label.

    Returns:
        As `draw_from_strata`.

    Raises:
        ConfigError: There are fewer verdicts in the surer half than to draw from it, or too few to draw.

    >>> drawn, strata = draw_surest({str(n): n / 100 for n in range(100)}, 30, np.random.default_rng(1))
    >>> sum(int(row) >= 50 for row in drawn), len(set(strata.values()))
    (25, 2)
    """
    middle = float(np.median(list(sureness.values()))) if sureness else 0.0
    parts = [[name for name in sureness if (sureness[name] >= middle) is is_sure] for is_sure in (True, False)]
    few = min(LEAST_UNITS, len(parts[1]))
    if not 2 * LEAST_UNITS <= count <= len(parts[0]) + few:
        raise ConfigError(f"cannot draw {count} claims: wanted at least 10, and there are {len(parts[0])} in the half")
    return _draw_parts(parts[: 1 + (few > 0)], [count - few, few][: 1 + (few > 0)], generator)


def _draw_parts(
    members: Sequence[Sequence[str]], numbers: Sequence[int], generator: np.random.Generator
) -> tuple[dict[str, float], dict[str, str]]:
    """Draw a number of rows from each part, as `draw_from_strata` returns them."""
    letters = generator.permutation(list(string.ascii_uppercase[: len(members)]))
    drawn, stratum = {}, {}
    for letter, rows, number in zip(letters, members, numbers, strict=True):
        for place in generator.permutation(len(rows))[:number]:
            drawn[rows[place]], stratum[rows[place]] = number / len(rows), str(letter)
    order = [list(drawn)[place] for place in generator.permutation(len(drawn))]
    seen: Counter[str] = Counter()
    turns = {}
    for row_id in order:  # the first rows of each stratum come first, so that people can stop early
        seen[stratum[row_id]] += 1
        turns[row_id] = min(seen[stratum[row_id]], _LEAST_OF_STRATUM + 1)
    order.sort(key=turns.__getitem__)
    return {row_id: drawn[row_id] for row_id in order}, stratum


def _ranks(scores: Mapping[str, float]) -> dict[str, float]:
    """Return the share of scores below each score, half of the equal ones included."""
    values = np.array(list(scores.values()), dtype=np.float64)
    order = np.sort(values)
    ends = [np.searchsorted(order, values, side=side) for side in ("left", "right")]
    return dict(zip(scores, ((ends[0] + ends[1]) / 2 / len(values)).tolist(), strict=True))


def _allocate(sizes: Sequence[int], spread: Sequence[float], count: int, least: int) -> list[int]:
    """Return how many rows to draw from each stratum: in proportion to size times spread, within limits."""
    numbers = [min(size, least) for size in sizes]
    for _ in range(count - sum(numbers)):
        wanted = [
            size * deviation / (number + 1) if number < size else 0.0
            for size, deviation, number in zip(sizes, spread, numbers, strict=True)
        ]
        numbers[int(np.argmax(wanted))] += 1
    return numbers
