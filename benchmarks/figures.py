"""Measure intervals, gates and alarms of figures such as latency, in simulated runs of 100 rows.

    PYTHONPATH=. python -m benchmarks.figures [--write]

A question has its own usual seconds, and each night another factor, both log-normal or with heavier tails. Every
night is compared with one accepted run. Five CPU minutes; fixed seeds. `--write` puts the tables into
`benchmarks/results/figures.md`.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta

import numpy as np

from benchmarks.nights import MonitoredYear
from benchmarks.results_tables import publish
from metric_core.gates.checks import check_gate
from metric_core.gates.rules import AbsoluteRule, Gate, Outcome, Statistic, Threshold
from metric_core.records import Direction, Score
from metric_core.statistics.bounded_means import Bounds, estimate_interval
from metric_core.statistics.pairs import ScoreColumns
from metric_core.statistics.quantiles import estimate_quantile
from metric_core.statistics.resampling import Floats, Units
from metric_core.statistics.run_panel import FIRST_RUNS, Panel

BEGIN, END = "<!-- begin: benchmarks/figures.py -->", "<!-- end of figures -->"
WORLDS, YEAR, ROWS = 100, 365, 100
START = datetime(2026, 1, 1, 3, tzinfo=UTC)
METRICS = ("latency", "faithfulness", "context_recall")

Draw = Callable[[np.random.Generator, tuple[int, ...]], Floats]
"""Draws logarithms of what a night makes of the seconds of rows."""


def log_normal(deviation: float) -> Draw:
    return lambda generator, shape: generator.normal(0, deviation, shape)


def heavy(generator: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """Return log-normal noise; one row in twenty waits for a time with a tail like x to the power of -2.5."""
    waits = generator.random(shape) < 0.05
    return generator.normal(0, 0.35, shape) + waits * generator.exponential(0.4, shape)


NOISE: dict[str, Draw] = {
    "log-normal, deviation 0.35": log_normal(0.35),
    "log-normal, deviation 0.5": log_normal(0.5),
    "log-normal, deviation 0.7": log_normal(0.7),
    "heavy tails: one row in twenty waits": heavy,
}
CHANGES: dict[str, Callable[[Floats], Floats]] = {
    "every answer takes twice as long": lambda logs: logs + np.log(2),
    "every answer takes 1.3 times as long": lambda logs: logs + np.log(1.3),
    "the slowest fifth takes three times as long": lambda logs: logs + np.log(3) * (logs > np.quantile(logs, 0.8)),
}


def play(world: int, draw: Draw, nights: int, shared: float = 0.0) -> tuple[Floats, Floats]:
    """Return logarithms of the seconds of the baseline, and of each night."""
    generator = np.random.default_rng([46, world])
    usual = generator.normal(0, 0.5, ROWS)
    logs = usual + draw(generator, (nights + 1, ROWS)) + generator.normal(0, shared, (nights + 1, 1))
    return logs[0], logs[1:]


def panel_of(world: int, baseline: Floats, nights: Floats) -> Panel:
    """Return the panel of the nights, with two scores in which some rows change for no reason."""
    generator = np.random.default_rng([47, world])
    ratios = np.clip((baseline - nights) / np.log(10), -1, 1)[..., None]
    scores = generator.choice([-1.0, 0.0, 1.0], p=[0.05, 0.9, 0.05], size=(*nights.shape, 2))
    starts = tuple(START + timedelta(days=night) for night in range(len(nights)))
    panel = Panel(METRICS, dict.fromkeys(METRICS, 1.0), starts, np.concatenate([ratios, scores], axis=-1))
    return panel.with_first_runs(starts[FIRST_RUNS - 2]) if len(nights) >= FIRST_RUNS else panel


def first_alarm(world: int, baseline: Floats, nights: Floats, since: int) -> int | None:
    """Return the first night since a night with an alarm about latency, counted from 1; None without one."""
    raised = MonitoredYear(panel_of(world, baseline, nights)).raised[:, 0]
    found = np.flatnonzero(raised[since:])
    return int(found[0]) + 1 if len(found) else None


def gate_fails(logs: Floats, bar: float) -> bool:
    cells = {str(row): Score.scored(float(value)) for row, value in enumerate(np.exp(logs))}
    column = ScoreColumns(metric="latency", direction=Direction.LOWER, a={}, b=cells, bounds=(0.0, np.inf))
    rule = AbsoluteRule("latency", Statistic.P95, Threshold(bar, is_floor=False))
    return check_gate(Gate(absolute=(rule,)), [column]).outcome is Outcome.FAILED


def usual_p95(draw: Draw) -> float:
    generator = np.random.default_rng(48)
    return float(np.exp(np.quantile(generator.normal(0, 0.5, 10**6) + draw(generator, (10**6,)), 0.95)))


def count_reports() -> Iterator[Sequence[str]]:
    """Yield how often a change is told by the gate and by the alarms, after a first night and after twenty nights."""
    for name, draw in NOISE.items():
        bar = usual_p95(draw)
        for change, make in CHANGES.items():
            gates, early, late, within = 0, 0, 0, 0
            for world in range(WORLDS):
                baseline, nights = play(world, draw, 30)
                changed = np.stack([make(night) for night in nights])
                gates += gate_fails(changed[0], bar)
                early += first_alarm(world, baseline, changed[:1], 0) == 1
                after = first_alarm(world, baseline, np.concatenate([nights[:20], changed[20:]]), 20)
                late, within = late + (after == 1), within + (after is not None)
            yield (name, change, *map(str, (gates, early, late, within)))


def count_quiet_years() -> Iterator[Sequence[str]]:
    """Yield in how many years in which nothing changes there is no alarm about anything."""
    lines = [(name, draw, 0.0) for name, draw in NOISE.items()]
    lines += [
        (f"{name}; all rows of a night share noise of {shared:.0%}", NOISE[name], shared) for name, shared in SHARED
    ]
    for name, draw, shared in lines:
        years = (MonitoredYear(panel_of(world, *play(world, draw, YEAR, shared))) for world in range(WORLDS))
        yield name, str(sum(not year.raised.any() for year in years))


SHARED = (("log-normal, deviation 0.5", 0.05), ("log-normal, deviation 0.5", 0.1), ("log-normal, deviation 0.5", 0.2))


def count_intervals() -> Iterator[Sequence[str]]:
    """Yield how many of 100 intervals of the mean and of quantiles hold, of independent rows and of groups of five."""
    for name, draw in NOISE.items():
        for rows, size in ((30, 1), (100, 1), (300, 1), (300, 5)):
            generator = np.random.default_rng([49, rows, size])
            sample = generator.normal(0, 0.5, 10**6) + draw(generator, (10**6,))
            true = {
                "mean": np.exp(sample).mean(),
                0.5: np.exp(np.quantile(sample, 0.5)),
                0.95: np.exp(np.quantile(sample, 0.95)),
            }
            held = {"mean": 0, 0.5: 0, 0.95: 0}
            count = 400 if size == 1 else 150
            for number in range(count):
                usual = np.repeat(generator.normal(0, 0.5, rows // size), size)
                values = np.exp(usual + draw(generator, (rows,)))
                groups = None if size == 1 else [str(row // size) for row in range(rows)]
                interval = estimate_interval(Units.from_values(values, groups), Bounds(0.0, np.inf), number)
                held["mean"] += interval is not None and interval.low <= true["mean"] <= interval.high
                for share in (0.5, 0.95):
                    found = estimate_quantile(values, share, 0.975, groups)
                    low, high = found.low or 0.0, found.high or np.inf
                    held[share] += low <= true[share] <= high
            yield (
                name,
                str(rows),
                str(rows // size) if size > 1 else "-",
                *(f"{of / count:.0%}" for of in held.values()),
            )


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the tables into benchmarks/results/figures.md")
    publish(tables(), BEGIN, END, write=parser.parse_args().write)


def tables() -> Iterator[str]:
    """Yield all tables."""
    heading = ("seconds of a row from night to night", "change", "gate, first night", "alarm, first night")
    yield _table(
        "Told, of 100 worlds.",
        (*heading, "alarm, first night after 20 quiet ones", "within 10 nights"),
        count_reports(),
    )
    yield _table(
        "Quiet years without any alarm, of 100.", ("seconds of a row from night to night", "years"), count_quiet_years()
    )
    yield _table("Intervals that hold.", ("seconds", "rows", "groups", "mean", "p50", "p95"), count_intervals())


def _table(title: str, heading: Sequence[str], rows: Iterator[Sequence[str]]) -> str:
    lines = [" | ".join(row) for row in (heading, ["---"] * len(heading), *rows)]
    return f"**{title}**\n\n" + "".join(f"| {line} |\n" for line in lines) + "\n"


if __name__ == "__main__":
    main()
