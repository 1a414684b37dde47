"""Measure how often the cause of a drop is named rightly, by the size of the anchor: system, judge, or both.

A world has 500 rows of four claims each: nine of ten answers are good (97 % of their claims supported), the others are
bad (40 %); of the anchor six of ten are good. A new system answers three of ten questions again and loses supported
claims. A new judge no longer supports some claims, and disagrees on others at random. Only nights whose drop is seen
(2.5 standard errors) count, because only these raise the question.

    PYTHONPATH=. python benchmarks/attribution.py
"""

import sys
from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from metric_core.statistics.attribution import Cause, ScoreChanges, attribute_change

ROWS, CLAIMS, NIGHTS = 500, 4, 300
SEED = 20240229
SUPPORTED = 0.9 * 0.97 + 0.1 * 0.4
"""Mean score of the rows."""
DOWN = 0.01
UP = DOWN * SUPPORTED / (1 - SUPPORTED)
"""Share of supported and of other claims on which another judge disagrees; the mean of the rows stays the same."""

Verdicts = NDArray[np.bool_]


@dataclass(frozen=True)
class World:
    """The changes from the baseline to the night.

    Args:
        name: Name for the table.
        cause: The true cause.
        system: Drop of the mean that the system causes.
        judge: Drop of the mean that the judge causes.
        is_new_judge: True if another judge judges, even if it is as strict.
    """

    name: str
    cause: Cause
    system: float = 0.0
    judge: float = 0.0
    is_new_judge: bool = False


WORLDS = (
    World("system, the judge is the same", Cause.SYSTEM, system=0.05),
    World("system, another judge that is as strict", Cause.SYSTEM, system=0.1, is_new_judge=True),
    World("judge, drop 0.05", Cause.JUDGE, judge=0.05, is_new_judge=True),
    World("judge, drop 0.10", Cause.JUDGE, judge=0.1, is_new_judge=True),
    World("both, 0.10 each", Cause.BOTH, system=0.1, judge=0.1, is_new_judge=True),
)
ANCHORS = (30, 60, 100, 200, 400)


def draw_texts(draw: np.random.Generator, rows: int, good: float) -> Verdicts:
    """Return whether the claims of each text are supported."""
    quality = np.where(draw.random(rows) < good, 0.97, 0.4)
    supported: Verdicts = draw.random((rows, CLAIMS)) < quality[:, None]
    return supported


def judge_tonight(draw: np.random.Generator, texts: Verdicts, world: World) -> Verdicts:
    """Return the verdicts of the judge of the night."""
    if not world.is_new_judge:
        return texts
    turned = np.where(texts, draw.random(texts.shape) < DOWN, draw.random(texts.shape) < UP)
    verdicts: Verdicts = (texts ^ turned) & (draw.random(texts.shape) >= world.judge / SUPPORTED)
    return verdicts


def changes(before: Verdicts, after: Verdicts) -> ScoreChanges:
    """Return the changes of the scores."""
    old, new = before.mean(axis=1), after.mean(axis=1)
    return ScoreChanges(new - old, old)


def measure(world: World, anchor_rows: int, nights: int = NIGHTS) -> Counter[Cause]:
    """Return how often each cause was named."""
    draw = np.random.default_rng([SEED, anchor_rows, WORLDS.index(world)])
    named: Counter[Cause] = Counter()
    while named.total() < nights:
        texts, anchor = draw_texts(draw, ROWS, 0.9), draw_texts(draw, anchor_rows, 0.6)
        tonight = texts.copy()
        repeated = draw.random(ROWS) < 0.3
        tonight[repeated] = draw_texts(draw, int(repeated.sum()), 0.9)
        tonight &= draw.random(texts.shape) >= world.system / SUPPORTED
        rows = changes(texts, judge_tonight(draw, tonight, world))
        if rows.changes.mean() > -2.5 * rows.changes.std() / np.sqrt(ROWS):
            continue
        of_anchor = changes(anchor, judge_tonight(draw, anchor, world))
        named[attribute_change(rows, of_anchor, judge_differs=world.is_new_judge).cause] += 1
    return named


def main() -> None:
    """Print the table of docs/statistics-judges.md."""
    headings = " | ".join(f"{rows} rows" for rows in ANCHORS)
    sys.stdout.write(f"| what changed | {headings} |\n|---|{'---|' * len(ANCHORS)}\n")
    for world in WORLDS:
        cells = []
        for rows in ANCHORS:
            named = measure(world, rows)
            wrong = named.total() - named[world.cause] - named[Cause.UNKNOWN]
            cells.append(f"{named[world.cause] / named.total():.0%} / {wrong / named.total():.1%}")
        sys.stdout.write(f"| {world.name} | {' | '.join(cells)} |\n")


if __name__ == "__main__":
    main()
