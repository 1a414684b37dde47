"""Measure how often outcomes of comparisons that are called robust are wrong, and fragile ones are named.

    PYTHONPATH=. python benchmarks/robustness.py [--runs 500] [--write]

Two runs of 300 rows in ten topics are judged by judges of known errors, and compared. An outcome is wrong if it is
better or worse although the true quality of both systems is the same, or the other way round. A second judge, whose
errors are others, is asked about at most a tenth of the rows. `--write` also puts the tables into
`benchmarks/results/robustness.md`. Takes five minutes on one core.
"""

import argparse
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.results_tables import publish
from metric_core.gates.checks import check_gate
from metric_core.gates.rules import AbsoluteRule, Gate, Outcome, Statistic, Threshold
from metric_core.records import Direction, Score
from metric_core.statistics.answer_lengths import find_length_effect
from metric_core.statistics.bounded_means import Bounds
from metric_core.statistics.comparison import ChangeOutcome, PairedMetric, compare_paired, compare_pairs, decide_again
from metric_core.statistics.earlier_runs import adjust_differences
from metric_core.statistics.judge_variance import JudgeVariance, estimate_judge_variance
from metric_core.statistics.pairs import Pairs, ScoreColumns
from metric_core.statistics.resampling import Floats
from metric_core.statistics.robustness import DecidedDifference, Part, Robustness, SecondOpinion, noise_of
from metric_core.statistics.second_judge import (
    Candidates,
    choose_rows,
    judge_columns,
    judge_pairs,
    most_rows,
    order_by_change,
)

BEGIN, END = "<!-- begin: benchmarks/robustness.py -->", "<!-- end of robustness -->"
ROWS, TOPICS, GOOD, KEPT = 300, 10, 0.85, 0.9
SECOND_ERRORS = (0.05, 0.1, 0.2)
"""Shares of the verdicts of a second judge that are wrong."""
NAMES = tuple(f"r{i:03}" for i in range(ROWS))
TOPIC = np.arange(ROWS) % TOPICS
PARTS = [Part(f"topic {t}", frozenset(NAMES[i] for i in np.flatnonzero(t == TOPIC))) for t in range(TOPICS)]


@dataclass(frozen=True)
class World:
    """Two systems and their judge.

    Args:
        drop: Share of the good rows of the second system that are bad.
        dropped_topics: Number of topics with the drop.
        error: Share of verdicts that are wrong in both runs, and stay so if the judge is asked again.
        flip: Share of verdicts that are turned, other ones each time the judge is asked.
        shift: Standard deviation of the shift of the mean that all verdicts of a run share.
        harsh: Share of the good rows of one topic that the judge calls bad in the second run only.
        by_length: Share of the rows with an answer of e times the length that it calls bad for that; B's are
            1.4 times as long.
        again: Number of later runs that asked about rows again, and number of these rows.
        fragile: Kind of the cause of the outcomes: "parts", "judge" or "lengths"; empty for none.
    """

    name: str
    drop: float = 0.0
    dropped_topics: int = TOPICS
    error: float = 0.0
    flip: float = 0.0
    shift: float = 0.0
    harsh: float = 0.0
    by_length: float = 0.0
    again: tuple[int, int] = (30, 100)
    fragile: str = ""


WORLDS = (
    World("the same quality, a judge without errors"),
    World("the same quality, 10 % of verdicts wrong", error=0.1),
    World("a drop of .08 everywhere, a judge without errors", drop=0.094),
    World("a drop of .08 everywhere, 10 % of verdicts wrong", drop=0.094, error=0.1),
    World("a drop in one topic of ten", drop=0.7, dropped_topics=1, fragile="parts"),
    World("the same quality, the judge turns against B in one topic", harsh=0.7, fragile="parts"),
    World("the judge shifts, known from 60 rows in 10 nights", shift=0.04, flip=0.02, again=(10, 60), fragile="judge"),
    World("the judge shifts, known from 100 rows in 30 nights", shift=0.04, flip=0.02, fragile="judge"),
    World("the same quality, the judge errs on long answers", by_length=0.4, fragile="lengths"),
)


def judge(world: World, good: np.ndarray, lengths: Floats, is_second: bool, generator: np.random.Generator) -> Floats:
    """Return the verdicts of one run of the judge."""
    verdicts = good.copy()
    wrong = np.random.default_rng(int(lengths[0] * 1e6)).random(ROWS) < world.error
    verdicts ^= wrong
    if is_second:
        verdicts &= ~((TOPIC == 0) & (generator.random(ROWS) < world.harsh))
    verdicts &= generator.random(ROWS) >= np.clip(world.by_length * np.log(lengths / 80), 0, 0.9)
    verdicts ^= generator.random(ROWS) < world.flip
    shift = generator.normal(0, world.shift)
    turned = generator.random(ROWS) < (shift / GOOD if shift > 0 else -shift / (1 - GOOD))
    return (np.where(turned, shift < 0, verdicts)).astype(np.float64)


def find_variance(
    asked: Callable[[], Floats], first: Floats, again: tuple[int, int], generator: np.random.Generator
) -> Mapping[str, JudgeVariance]:
    """Return the variance of the judge, from rows that later runs asked about again."""
    found = []
    for _ in range(again[0]):
        chosen, new = generator.permutation(ROWS)[: again[1]], asked()
        found.append({NAMES[i]: (float(first[i]), float(new[i])) for i in chosen})
    variance = estimate_judge_variance(found, Bounds(0.0, 1.0))
    return {} if variance is None else {"m": variance}


@dataclass(frozen=True)
class Simulated:
    """The outcome of a comparison, and what is known of it.

    Args:
        found: Rows, parts and judge that it hangs on; None if it was not tested.
        by_length: True if the lengths are named.
        asked: Share of the rows that a second judge was asked about.
        seconds: The outcome with a second judge of each share of errors; None if it was not asked.
    """

    outcome: ChangeOutcome
    found: Robustness | None
    by_length: bool
    asked: float
    seconds: tuple[SecondOpinion | None, ...]

    def is_robust(self, second: int | None) -> bool:
        """Return whether the outcome is called robust, without a second judge or with one of them."""
        if self.found is None or self.by_length:
            return False
        return replace(self.found, second=None if second is None else self.seconds[second]).is_robust


def simulate(world: World, seed: int) -> Simulated:
    """Compare two runs, and find out what the outcome hangs on."""
    generator = np.random.default_rng([seed, 43])
    before = generator.random(ROWS) < GOOD
    kept = generator.random(ROWS) < KEPT
    after = np.where(kept, before, generator.random(ROWS) < GOOD)
    dropped = (world.dropped_topics > TOPIC) & (generator.random(ROWS) < world.drop)
    after &= ~dropped
    usual = generator.lognormal(4.4, 0.5, ROWS)
    lengths = [times * usual * generator.lognormal(0, 0.2, ROWS) for times in (1.0, 1.4 if world.by_length else 1.0)]
    a, b = (
        judge(world, good, length, bool(side), generator)
        for side, (good, length) in enumerate(zip((before, after), lengths, strict=True))
    )
    cells = [{name: Score.scored(v) for name, v in zip(NAMES, scores, strict=True)} for scores in (a, b)]
    column = ScoreColumns(metric="m", direction=Direction.HIGHER, a=cells[0], b=cells[1], bounds=(0.0, 1.0))
    metric = PairedMetric.from_columns(column)
    (found,), (pairs, _) = compare_paired([metric]), metric.on_scale(None)
    if found.difference is None:
        return Simulated(found.verdict, None, by_length=False, asked=0.0, seconds=(None,) * len(SECOND_ERRORS))
    noise = None
    if world.flip or world.shift:
        variance = find_variance(lambda: judge(world, after, lengths[1], True, generator), b, world.again, generator)
        noise = noise_of("m", [variance, variance], ROWS)

    def decide(pairs: Pairs) -> ChangeOutcome:
        return decide_again([found], 0, compare_pairs(column, pairs, adjust_differences(pairs)))

    decided = DecidedDifference(
        rows=pairs.rows,
        values=pairs.differences,
        difference=found.difference,
        outcome=found.verdict,
        without=lambda rows: decide(pairs.without(rows)),
    )
    candidates = [Candidates("m", order_by_change(pairs))] if decided.may_turn() else []
    chosen = choose_rows(candidates, most_rows(ROWS)).get("m", [])
    seconds: list[SecondOpinion | None] = []
    for error in SECOND_ERRORS if chosen else ():
        of_second = np.random.default_rng([seed, 44])
        wrong, other = of_second.random(ROWS) < error, of_second.random(ROWS) < error
        verdicts = (before ^ wrong, after ^ np.where(kept & ~dropped, wrong, other))
        scores = {NAMES[i]: (float(verdicts[0][i]), float(verdicts[1][i])) for i in map(NAMES.index, chosen)}
        is_other = decide(judge_pairs(pairs, scores)) is not found.verdict
        seconds.append(SecondOpinion("second", len(chosen), 0, is_other))
    is_clear = found.verdict is not ChangeOutcome.UNCLEAR
    return Simulated(
        found.verdict,
        decided.find_robustness(PARTS, noise),
        by_length=is_clear and find_length_effect((a, b), (lengths[0], lengths[1])) is not None,
        asked=len(chosen) / ROWS,
        seconds=tuple(seconds) or (None,) * len(SECOND_ERRORS),
    )


def tables(runs: int) -> Iterator[str]:
    """Yield the tables, line by line."""
    judges: tuple[int | None, ...] = (None, *range(len(SECOND_ERRORS)))
    lines: dict[int | None, list[str]] = {number: [] for number in judges}
    for number, world in enumerate(WORLDS):
        done = [simulate(world, 1000 * number + run) for run in range(runs)]
        for second in judges:
            lines[second].append(_line(world, done, second))
    yield "| world | better or worse | wrong | robust and wrong | robust and right | fragile and named |\n"
    yield "|---|---|---|---|---|---|\n"
    yield from lines[None]
    for second, error in enumerate(SECOND_ERRORS):
        yield f"\nWith a second judge that errs in {100 * error:.0f} % of its verdicts, by chance:\n\n"
        yield "| world | rows asked about | robust and wrong | robust and right | fragile and named |\n"
        yield "|---|---|---|---|---|\n"
        yield from lines[second]
    yield from gates_table(runs)


def _line(world: World, done: Sequence[Simulated], second: int | None) -> str:
    """Return the line of a world, without a second judge or with one of them."""
    counts: Counter[str] = Counter()
    for each in done:
        is_clear = each.outcome in (ChangeOutcome.BETTER, ChangeOutcome.WORSE)
        is_wrong = is_clear and (each.outcome is ChangeOutcome.BETTER or not world.drop)
        found, is_robust = each.found, each.is_robust(second)
        named = {"lengths": each.by_length, "parts": found and found.parts, "judge": found and found.by_judge}
        counts.update(
            {
                "clear": is_clear,
                "wrong": is_wrong,
                "robust and wrong": is_wrong and is_robust,
                "right": is_clear and not is_wrong and is_robust,
                "named": is_clear and bool(world.fragile and (named[world.fragile] or not is_robust)),
            }
        )
    keys = ("clear", "wrong", "robust and wrong", "right") if second is None else ("robust and wrong", "right")
    shares = [f"{100 * counts[key] / len(done):.1f} %" for key in keys]
    if second is not None:
        shares.insert(0, f"{100 * float(np.mean([each.asked for each in done])):.1f} %")
    is_fragile = world.fragile and counts["clear"]
    named_share = f"{100 * counts['named'] / counts['clear']:.0f} % of {counts['clear']}" if is_fragile else "-"
    return f"| {world.name} | {' | '.join(shares)} | {named_share} |\n"


@dataclass(frozen=True)
class GateWorld:
    """A run that a gate checks, and its judge.

    Args:
        quality: Share of the answers that are good.
        lenient: Share of the bad answers that the judge calls good.
    """

    quality: float
    lenient: float = 0.0


GATE_WORLDS = (
    GateWorld(0.9),
    GateWorld(0.9, lenient=0.3),
    GateWorld(0.78, lenient=0.4),
    GateWorld(0.78, lenient=0.6),
)
RULE = AbsoluteRule("m", Statistic.MEAN, Threshold(0.8, is_floor=True))


def simulate_gate(world: GateWorld, seed: int, *, is_unsure: bool) -> tuple[bool, bool]:
    """Return whether a gate passes, and whether it does so with the verdicts of a second judge.

    Args:
        is_unsure: True if the judge gives probabilities, and is less sure of verdicts that are wrong.
    """
    generator = np.random.default_rng([seed, 45])
    good = generator.random(ROWS) < world.quality
    verdicts = np.where(good, generator.random(ROWS) >= 0.03, generator.random(ROWS) < world.lenient)
    sureness = np.where(verdicts == good, generator.beta(8, 1, ROWS), generator.beta(1, 3, ROWS))
    second = good ^ (generator.random(ROWS) < 0.1)
    cells = {name: Score.scored(float(value)) for name, value in zip(NAMES, verdicts, strict=True)}
    column = ScoreColumns(metric="m", direction=Direction.HIGHER, a={}, b=cells, bounds=(0.0, 1.0))

    def passes(column: ScoreColumns) -> bool:
        return check_gate(Gate(absolute=(RULE,)), [column], seed).outcome is Outcome.PASSED

    if not passes(column):
        return False, False
    places = np.flatnonzero(verdicts)
    if is_unsure:
        places = places[np.argsort(sureness[places])]
    chosen = Candidates("m", [NAMES[place] for place in places], are_even=False).take(most_rows(ROWS))
    scores = {NAMES[place]: (None, float(second[place])) for place in places[: len(chosen)]}
    return True, passes(judge_columns(column, (), scores))


def gates_table(runs: int) -> Iterator[str]:
    """Yield a table of gates that pass, and of those that a second judge contradicts."""
    yield "\nA gate, faithfulness >= 0.8, and a second judge that errs in 10 % of its verdicts:\n\n"
    yield "| true mean | bad answers called good | passes | contradicted: probabilities known | not known |\n"
    yield "|---|---|---|---|---|\n"
    for world in GATE_WORLDS:
        cells = []
        for is_unsure in (True, False):
            done = [simulate_gate(world, seed, is_unsure=is_unsure) for seed in range(runs)]
            passed = sum(first for first, _ in done)
            cells.append(f"{100 * (passed - sum(second for _, second in done)) / max(passed, 1):.0f} %")
        shares = f"{100 * world.lenient:.0f} % | {100 * passed / runs:.0f} %"
        yield f"| {world.quality:g} | {shares} | {' | '.join(cells)} |\n"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    publish(tables(arguments.runs), BEGIN, END, write=arguments.write)


if __name__ == "__main__":
    main()
