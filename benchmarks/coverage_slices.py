"""Measure how often any slice is called bad although none is: gates, comparisons and summaries of many slices.

    PYTHONPATH=. python benchmarks/coverage_slices.py [--runs 300] [--write]

Prints a Markdown table of the share of runs with any error: without the correction for the number of slices, and with
the correction that the project makes. `--write` also puts it into `benchmarks/results/runs.md`. Takes some minutes.
"""

import argparse
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import chain

import numpy as np

from benchmarks.results_tables import publish
from metric_core.gates import drafts
from metric_core.gates.checks import GateFacts, check_gate
from metric_core.gates.rules import AbsoluteRule, Gate, Outcome, SliceSelection, Statistic, Threshold
from metric_core.records import Direction, Score
from metric_core.statistics import bounded_means, paired_tests
from metric_core.statistics.alarms import update_alarms
from metric_core.statistics.pairs import ScoreColumns
from metric_core.statistics.resampling import Floats
from metric_core.statistics.run_panel import Panel, find_large_groups, find_slice_rows, number_groups
from metric_core.statistics.slice_comparison import compare_slices
from metric_core.statistics.slice_summary import SlicedCells, summarize_slices
from metric_core.statistics.slices import RowSlices, divide_rows
from tasks.runtime.wording import format_percent
from tests.metric_core.statistics.worlds import SCORES, World

BEGIN, END = "<!-- begin: benchmarks/coverage_slices.py -->", "<!-- end slices -->"
WORLDS = tuple(
    world
    for world in SCORES
    if world.name in {"0/1, mean 0.9", "beta(8, 2)", "0.9 of rows score 1, the others a fraction"}
)
NUMBERS = (5, 20)
ROWS = 40
"""Number of rows of a slice."""
GROUP = 4
"""Number of rows of a group, in the worlds with groups; the rows of a group are in different slices."""
ALPHA = 0.05


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=300, help="runs per cell")
    parser.add_argument("--write", action="store_true", help="write the table into benchmarks/results/runs.md")
    options = parser.parse_args()
    # A fifth of the draws tells as much about hundreds of runs.
    bounded_means.BoundedMean.__init__.__defaults__ = ("", 999)
    paired_tests._PERMUTATIONS = 1999  # noqa: SLF001
    drafts._advise_rows = lambda *_: ""  # noqa: SLF001 no one reads the advice
    publish(chain(table(options.runs), customer_table(options.runs)), BEGIN, END, write=options.write)


def table(runs: int) -> Iterator[str]:
    """Yield the Markdown table."""
    cases: dict[str, Callable[[int, World, int], float]] = {
        "gate: any slice fails, each just at its threshold": gate_p,
        "comparison of equal systems: any slice better or worse": comparison_p,
        "summary of equal slices: any worse than the other rows": partial(summary_p, grouped=False),
        "the same, rows in groups of 4 across slices": partial(summary_p, grouped=True),
    }
    heads = " | ".join(f"{number} slices" for number in NUMBERS)
    yield f"| what | world | correction | {heads} |\n|---|---|---|{'---|' * len(NUMBERS)}\n"
    for what, measure in cases.items():
        for world in WORLDS:
            least = [[measure(seed, world, number) for seed in range(runs)] for number in NUMBERS]
            for correction in ("none", "**Holm**"):
                divisors = NUMBERS if correction == "none" else (1,) * len(NUMBERS)
                shares = [np.mean([p / by < ALPHA for p in found]) for found, by in zip(least, divisors, strict=True)]
                cells = " | ".join(format_percent(share, 1) for share in shares)
                is_first = correction == "none"
                labels = (what if is_first and world is WORLDS[0] else "", world.name if is_first else "", correction)
                yield f"| {' | '.join(labels)} | {cells} |\n"


def customer_table(runs: int) -> Iterator[str]:
    """Yield a table of a customer with 40 % of the rows, who loses 80 % of the score, in runs grouped by customer."""
    yield "\n### Grouped by customer, one with 40 % of the rows loses 80 % of its score: told by night 1, 2, 30\n\n"
    yield f"| rows | shared noise | no slices | slices by customer |\n|{'---|' * 4}\n"
    for rows, noise in ((100, 0.0), (300, 0.0), (300, 0.02)):
        cells = []
        for is_sliced in (False, True):
            nights = np.array([first_night(seed, rows, noise, is_sliced=is_sliced) for seed in range(runs)])
            cells.append(", ".join(format_percent(float(np.mean(nights <= night))) for night in (1, 2, 30)))
        yield f"| {rows} | {noise:g} | {' | '.join(cells)} |\n"


def first_night(seed: int, rows: int, noise: float, *, is_sliced: bool) -> int:
    """Return the number of the night that tells a drop of the largest customer, of 30; 99 for none."""
    generator, large = np.random.default_rng([99, seed]), round(0.4 * rows)
    names = ["acme"] * large + [f"c{customer}" for customer in generator.integers(0, 40, rows - large)]
    customers = {f"{row:04}": name for row, name in enumerate(names)}
    good = generator.beta(1.8, 0.2, rows)
    before = after = (generator.random(rows) < good) * 1.0
    nights = []
    for _ in range(30):
        after = np.where(generator.random(rows) < 0.2, (generator.random(rows) < good) * 1.0, after)
        nights.append(np.where(np.arange(rows) < large, 0.2, 1.0) * after - before)
    parts = find_slice_rows(divide_rows("customer", customers, 20), [*customers])
    panel = Panel(
        ("m",),
        {"m": 1.0},
        tuple(datetime(2026, 3, 1, tzinfo=UTC) + timedelta(days=day) for day in range(30)),
        np.array(nights)[:, :, None],
        groups=number_groups(names),
        slices=tuple(parts if is_sliced else find_large_groups("customer", customers, [*customers])),
        shared_noise={"m": noise} if noise else {},
    )
    return next((run + 1 for run in range(30) if update_alarms(panel.select(range(run + 1)), 60 + run)), 99)


def rows_of(slices: int) -> RowSlices:
    """Return slices of equal size."""
    return divide_rows("slice", {f"{i:05}": f"s{i % slices:02}" for i in range(ROWS * slices)})


def cells_of(values: Iterable[float]) -> dict[str, Score]:
    """Return the cells of values."""
    return {f"{i:05}": Score.scored(float(value)) for i, value in enumerate(values)}


def gate_p(seed: int, world: World, slices: int) -> float:
    """Return the least corrected p-value of a gate whose slices are all just at the threshold."""
    values = world.draw(np.random.default_rng([23, seed, slices]), ROWS * slices)
    column = ScoreColumns(metric="m", direction=Direction.HIGHER, a={}, b=cells_of(values), bounds=(0.0, 1.0))
    rule = AbsoluteRule("m", Statistic.MEAN, Threshold(world.mean), SliceSelection("slice"))
    result = check_gate(Gate(absolute=(rule,)), [column], seed, GateFacts(slices=[rows_of(slices)]))
    least = _least(check.p for check in result.checks)
    assert (result.outcome is Outcome.FAILED) == (least <= 1 - 0.95)
    return least


def comparison_p(seed: int, world: World, slices: int) -> float:
    """Return the least corrected p-value of a comparison of two equal systems."""
    generator = np.random.default_rng([29, seed, slices])
    a, b = _pairs(generator, world, ROWS * slices)
    column = ScoreColumns(metric="m", direction=Direction.HIGHER, a=cells_of(a), b=cells_of(b), bounds=(0.0, 1.0))
    found = compare_slices([column], [rows_of(slices)], seed)
    return _least(part.comparison.difference.p_adjusted for part in found if part.comparison.difference)


def summary_p(seed: int, world: World, slices: int, *, grouped: bool) -> float:
    """Return the least corrected p-value of slices that are equal."""
    generator = np.random.default_rng([31, seed, slices, grouped])
    values = world.draw(generator, ROWS * slices)
    if grouped:  # the rows of a group have one value
        values = np.repeat(values[: len(values) // GROUP], GROUP)
    cells = SlicedCells("m", Direction.HIGHER, (0.0, 1.0), is_grouped=grouped)
    sliced = rows_of(slices)
    scored = ((row, score, f"group {int(row) // GROUP}") for row, score in cells_of(values).items())
    cells.add_all(scored, [sliced])
    [column] = summarize_slices([cells], [sliced])
    return _least(one.metrics[0].rest.p for one in column.slices if one.metrics[0].rest is not None)


def _pairs(generator: np.random.Generator, world: World, rows: int) -> tuple[Floats, Floats]:
    """Return the scores of two equal systems: half of the rows score the same in both, the others anything."""
    a, b = world.draw(generator, rows), world.draw(generator, rows)
    return a, np.where(generator.random(rows) < 0.5, a, b)


def _least(p_values: Iterable[float | None]) -> float:
    return min((p for p in p_values if p is not None), default=1.0)


if __name__ == "__main__":
    main()
