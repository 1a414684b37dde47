"""Measure how often numbers that rest on labels of people hold, in worlds whose truth is known.

    PYTHONPATH=. python benchmarks/coverage_labels.py [--runs 1000] [--public] [--write]

Prints coverage of 95 % intervals, half widths and false passes of gates beside an obvious or former method; `--write`
puts the tables into benchmarks/results/labels.md. 200 runs take half an hour of CPU time. A short form is in
tests/metric_core/calibration. `--public` measures the ways to choose labels, and the thresholds of a cascade, on public
data that people have labelled, with the built-in judge; it needs the data in `../shared/meta_eval` beside the
repository.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from unittest.mock import patch

import numpy as np

from benchmarks.labelled_examples import DATA, Example, attributions, begin, factcheck, factscore, nuggets, wice
from benchmarks.results_tables import publish
from metric_core.calibration import judge_error, sampled_labels, sure_answers, weighted_statistics
from metric_core.calibration.beta_means import BetaMean
from metric_core.calibration.calibrate import LabelledScores, measure_human_agreement
from metric_core.calibration.estimates import ExactEstimate
from metric_core.calibration.judge_error import correct_mean, describe_outside, estimate_judge_error
from metric_core.calibration.labels import Scale
from metric_core.calibration.looks import LookedAt, tail_of_look
from metric_core.calibration.random_sample import describe_strictness
from metric_core.calibration.sampled_labels import SampledLabels, estimate_label_mean
from metric_core.calibration.sure_answers import measure_sure_answers
from metric_core.prompts.judge_questions import YES
from metric_core.statistics.bounded_means import BoundedMean
from metric_core.statistics.resampling import LEVEL, Floats, Interval, Units
from tasks.calibration.label_sampling import active_strata, draw, draw_from_strata
from tasks.models.embedders.minilm import MiniLm
from tasks.models.judges.builtin.builtin_judge import BuiltinJudge
from tasks.models.recognizers.spacy_pipeline import SpacyPipeline
from tasks.runtime.wording import format_percent

PUBLIC_BEGIN, PUBLIC_END = "<!-- begin: benchmarks/coverage_labels.py --public -->", "<!-- end of public labels -->"
BEGIN, END = "<!-- begin: benchmarks/coverage_labels.py -->", "<!-- end of labels -->"
SIZES = (20, 50, 100)
OWN = (20, 50, 100, 200, 400)
GROUPS = (10, 20, 60)
CLAIMS = (30, 50, 100, 200)
WAYS = {"uniform": "uniform", "strata": "by score (`--strata 5`)", "active": "`--active`"}
PUBLIC: dict[str, Callable[[], list[Example]]] = {
    "BEGIN": begin,
    "WiCE": wice,
    "Factcheck-Bench": factcheck,
    "AttributionBench": attributions,
    "QAMPARI nuggets": nuggets,
}
CASCADED = (100, 200, 400)
LOOKS = {"every 50 labels up to 400": tuple(range(50, 401, 50)), "50, 80, ... 200": tuple(range(50, 201, 30))}
CASCADES = ((0.05, 200), (0.05, 400), (0.1, 100), (0.1, 200), (0.1, 400), (0.2, 100))
"""Accepted share of disagreements, and number of labels."""
VERDICTS = 2000
"""Number of verdicts of a run with a cascade."""
SURENESS: dict[str, Callable[[Floats], Floats]] = {
    "fewer, the surer": lambda s: 0.8 * (2 - 2 * s) ** 1.5,
    "12 % however sure": lambda s: np.full(len(s), 0.12),
    "30 % of the surest fifth, else 2 %": lambda s: np.where(s > 0.947, 0.3, 0.02),
    "0 % of the surest fifth, then 25 %, 2 %": lambda s: np.select([s > 0.947, s > 0.8], [0.0, 0.25], 0.02),
}
"""Share of wrong verdicts by sureness, whose square is uniform between the middle and 1."""
RUN = 300
SEED = 6

Draw = Callable[[np.random.Generator, Floats], Floats]
"""Function from labels to the scores of a judge."""


def _binary(sensitivity: float, specificity: float) -> Draw:
    def draw(generator: np.random.Generator, labels: Floats) -> Floats:
        right = generator.random(len(labels)) < np.where(labels > 0, sensitivity, specificity)
        return np.where(right, labels, 1 - labels)

    return draw


JUDGES: dict[str, Draw] = {
    "right in 95 % of good, 80 % of bad rows": _binary(0.95, 0.8),
    "98 %, 95 %": _binary(0.98, 0.95),
    "90 %, 90 %": _binary(0.9, 0.9),
    "85 %, 75 %": _binary(0.85, 0.75),
    "always right": _binary(1.0, 1.0),
    "70 %, 60 %": _binary(0.7, 0.6),
    "scores in between": lambda g, y: np.where(y > 0, g.beta(8, 2, len(y)), g.beta(3, 3, len(y))),
    "shares of 5 claims": lambda g, y: g.binomial(5, np.where(y > 0, 0.97, 0.68)) / 5,
    "mostly 1": lambda g, y: np.where(g.random(len(y)) < np.where(y > 0, 0.95, 0.3), 1.0, g.beta(2, 2, len(y))),
}
GROUP_SIZES: dict[str, Callable[[np.random.Generator], Floats]] = {
    "five rows each": lambda _: np.full(200, 5.0),
    "1 to 9 rows": lambda g: g.integers(1, 10, 200).astype(np.float64),
    "lognormal sizes": lambda g: np.maximum(1.0, np.round(np.exp(g.normal(1.2, 0.9, 200)))),
}


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000, help="runs per cell")
    parser.add_argument("--write", action="store_true", help="write the tables into benchmarks/results/labels.md")
    parser.add_argument("--public", action="store_true", help="choose labels of public data")
    options = parser.parse_args()
    if options.public and not DATA.is_dir():
        sys.exit(f"the labelled data is missing: no {DATA}")
    if options.public:
        publish(public_tables(options.runs), PUBLIC_BEGIN, PUBLIC_END, write=options.write)
    else:
        publish(tables(options.runs), BEGIN, END, write=options.write)


def tables(runs: int) -> Iterator[str]:
    """Yield the tables as Markdown, with a fifth of the draws."""
    fewer = partial(BoundedMean, draws=999)
    with patch.object(sampled_labels, "BoundedMean", fewer), patch.object(judge_error, "DRAWS", 1024):
        yield from _tables(runs)


def _tables(runs: int) -> Iterator[str]:
    heads = [f"{size} labels" for size in SIZES]
    yield "**Labels from elsewhere.** Coverage of the bias-corrected mean (half width); passes of a gate whose bar is "
    yield "the true mean. "
    yield f"Runs of {RUN} rows.\n\n"
    yield _row("judge; good rows among labels, in the run", heads) + _row("---", ["---"] * len(SIZES))
    for name, judge in JUDGES.items():
        for labelled, share in ((0.6, 0.95), (0.9, 0.9), (0.95, 0.7)):
            cells = [_elsewhere(judge, size, labelled, share, runs) for size in SIZES]
            yield _row(f"{name}; {labelled:.0%}, {share:.0%}".replace("%", " %").replace("  ", " "), cells)
    yield from _own_tables(runs)
    yield "\n**Agreement at the best threshold.** Coverage of AUROC and kappa; share of lower ends of kappa, which "
    yield "gates read, above the true kappa.\n\n"
    yield _row("good rows", heads) + _row("---", ["---"] * len(SIZES))
    for share in (0.6, 0.9):
        yield _row(format_percent(share), [_figures(size, share, max(60, runs // 4)) for size in SIZES])
    yield "\n**Drawn by score.** Labels of a run of 1,000 rows, 70 % good, drawn from 5 strata of the score: coverage "
    yield "(half width), root mean square error; in italics drawn from all rows at once.\n\n"
    yield _row("judge", heads) + _row("---", ["---"] * len(SIZES))
    for name, judge in JUDGES.items():
        yield _row(name, [_by_score(judge, size, runs) for size in SIZES])
    yield "\n**Single claims.** Labels of claims of a run of 500 rows with 1 to 9 claims each; those of a row are good "
    yield "or hard to judge together, and the mean score counts rows equally. Coverage (half width), root mean square "
    yield "error.\n\n"
    yield _row("choice", [f"{size} labels" for size in CLAIMS]) + _row("---", ["---"] * len(CLAIMS))
    for way, title in WAYS.items():
        yield _row(title, [_claims(way, size, runs) for size in CLAIMS])
    yield _row("uniform, as if claims were independent and equal", [_claims("naive", size, runs) for size in CLAIMS])
    yield from _cascade_worlds(runs)
    yield from _look_tables(runs)
    yield from _limit_tables(runs)
    yield "\n"


def public_tables(runs: int) -> Iterator[str]:
    """Yield the table of public data as Markdown."""
    yield "Coverage (half width) of the mean label, by labels of claims chosen in each way; half width as a share of "
    yield "that of a uniform choice. Runs of as many rows as the data has, drawn from it with replacement, so that its "
    yield "mean label is the truth. The score is the judge's verdict, or its probability.\n\n"
    titles = [f"{size} labels, {title}" for size in SIZES[1:] for title in WAYS.values()]
    yield _row("data; score", titles) + _row("---", ["---"] * len(titles))
    asked = {name: ask_judge(read()) for name, read in PUBLIC.items()}
    for name, (labels, beliefs, _) in asked.items():
        for score, scores in (("verdict", (beliefs >= 0.5).astype(np.float64)), ("probability", beliefs)):
            cells = []
            for size in SIZES[1:]:
                found = {way: _public(_Population(labels, scores, beliefs), way, size, runs) for way in WAYS}
                alone = float(np.mean(found["uniform"][1]))
                cells += [f"{_cell(*each)}, {np.mean(each[1]) / alone:.2f}" for each in found.values()]
            yield _row(f"{name}; {score}", cells)
    yield from cascade_tables(asked | {"FActScore": ask_judge(factscore())})


def cascade_tables(asked: Mapping[str, tuple[Floats, Floats, list[str]]], runs: int = 300) -> Iterator[str]:
    """Yield the table of a cascade's thresholds as Markdown.

    Args:
        asked: Data set -> labels, probabilities and groups, as `ask_judge` returns them.
    """
    yield "\n**Cascade.** Share of draws in which people disagree with at most the accepted share of the verdicts that "
    yield "the built-in judge gives alone (nominal: at least 95 %); mean share of all verdicts that it so gives, which "
    yield "are saved; in parentheses the share if all labels were known. Labels are a uniform sample of a run of at "
    yield f"least 2,000 verdicts, drawn from the data with replacement, by group. {runs} draws a cell.\n\n"
    yield _row(
        "data; verdicts, groups, wrong verdicts",
        [f"accepted {_percent([most])}, {size} labels" for most, size in CASCADES],
    )
    yield _row("---", ["---"] * len(CASCADES))
    with patch.object(sure_answers, "BoundedMean", partial(BoundedMean, draws=499)):
        for name, (labels, beliefs, groups) in asked.items():
            wrong = ((beliefs >= 0.5) != (labels > 0.5)).astype(np.float64)
            cells = [_cascade(np.maximum(beliefs, 1 - beliefs), wrong, groups, *each, runs) for each in CASCADES]
            size = f"{len(wrong):,} in {len(set(groups)):,}"
            yield _row(f"{name}; {size}, {_percent([float(wrong.mean())])}", cells)


def _cascade_worlds(runs: int) -> Iterator[str]:
    yield "\n**Cascade.** Share of draws in which people disagree with at most 10 % of the verdicts that the cheaper "
    yield "judge gives alone (nominal: at least 95 %), share of all verdicts that it so gives, in parentheses that "
    yield "if all labels were known; the same with labels of the surer half (`--surest`). "
    yield f"Runs of {VERDICTS:,} verdicts, each alone or five to a row, wrong together.\n\n"
    yield _row("wrong verdicts; rows", [f"{size} labels" for size in CASCADED]) + _row("---", ["---"] * len(CASCADED))
    generator = np.random.default_rng([SEED, 31])
    number = np.arange(40 * VERDICTS)
    for name, share in SURENESS.items():
        for rows, unit, together in (("one verdict", number, 0.0), ("five", number // 5, 0.55)):
            sureness = 0.5 + 0.5 * np.sqrt(generator.random(len(number)))
            shared = generator.random(len(number))[unit]
            luck = np.where(generator.random(len(number)) < together, shared, generator.random(len(number)))
            wrong, groups = (luck < share(sureness)).astype(np.float64), list(map(str, unit))
            cells = [
                "; ".join(_cascade(sureness, wrong, groups, 0.1, size, runs, VERDICTS, each) for each in (0.0, 0.5))
                for size in CASCADED
            ]
            yield _row(f"{name}; {rows}", cells)


def _cascade(  # noqa: PLR0913, PLR0917 what a cell is about
    sureness: Floats,
    wrong: Floats,
    groups: Sequence[str],
    most: float,
    size: int,
    runs: int,
    verdicts: int = 0,
    surest: float = 0.0,
) -> str:
    generator = np.random.default_rng([SEED, 25])
    _, unit = np.unique(groups, return_inverse=True)
    count = len(set(groups)) * (verdicts or max(VERDICTS, len(wrong))) // len(wrong)
    members = np.split(np.argsort(unit, kind="stable"), np.cumsum(np.bincount(unit))[:-1])
    held, saved = [], []
    for _ in range(runs):
        drawn = [members[number] for number in generator.integers(0, len(members), count)]
        rows = np.concatenate(drawn)
        of_group = np.repeat(np.arange(len(drawn)), [len(each) for each in drawn])
        given = np.full(len(rows), np.nan)
        least = float(np.quantile(sureness[rows], surest))
        labelled = generator.permutation(np.flatnonzero(sureness[rows] >= least))[:size]
        given[labelled] = wrong[rows[labelled]]
        names = [str(number) for number in of_group]
        found = measure_sure_answers(sureness[rows], given, names, 1 - LEVEL, least if surest else 0.0).choose(most)
        stands = sureness >= (2.0 if found is None else found.least)
        held.append(not stands.any() or float(wrong[stands].mean()) <= most)
        saved.append(float(stands.mean()))
    order = np.argsort(-sureness, kind="stable")
    risks = np.cumsum(wrong[order]) / np.arange(1, len(order) + 1)
    best = (np.flatnonzero(risks <= most).max(initial=-1) + 1) / len(order)
    return f"{_percent(held)}, {_percent(saved)} ({_percent([float(best)])})"


def ask_judge(examples: list[Example]) -> tuple[Floats, Floats, list[str]]:
    """Return the labels of examples, the built-in judge's probabilities of yes, and the groups."""
    judge = BuiltinJudge(MiniLm(), SpacyPipeline())
    answers = judge.choose([example.question for example in examples])
    known = [
        (example.label, answer.probabilities[YES], example.group)
        for example, answer in zip(examples, answers, strict=True)
        if answer.probabilities
    ]
    labels, beliefs, groups = zip(*known, strict=True)
    return np.array(labels, dtype=np.float64), np.array(beliefs), list(groups)


@dataclass(frozen=True)
class _Population:
    labels: Floats
    scores: Floats
    beliefs: Floats


def _public(data: _Population, way: str, size: int, runs: int) -> tuple[list[bool], list[float]]:
    generator = np.random.default_rng([SEED, 25])
    count, truth = len(data.labels), float(data.labels.mean())
    held, widths = [], []
    for _ in range(runs):
        rows = generator.integers(0, count, count)
        sample = _choose(way, size, _Population(data.labels[rows], data.scores[rows], data.beliefs[rows]), generator)
        interval = estimate_label_mean(sample).estimate.interval()
        held.append(_covers(interval, truth))
        widths.append(_half(interval))
    return held, widths


def _choose(way: str, size: int, run: _Population, generator: np.random.Generator) -> SampledLabels:
    """Return the rows of a run with labels of some, chosen in one of the ways of `assay label`."""
    rows = [f"{number:05}" for number in range(len(run.labels))]
    names: dict[str, str] = {}
    if way in ("strata", "active"):
        values, strata = (run.scores, 5) if way == "strata" else (run.beliefs, active_strata(size))
        scores, is_active = dict(zip(rows, values.tolist(), strict=True)), way == "active"
        drawn, names = draw_from_strata(scores, size, strata, generator, is_active=is_active)
    else:
        drawn = draw(rows, size, None, generator)
    chosen = [int(row) for row in drawn]
    labels, probabilities = np.full(len(rows), np.nan), np.full(len(rows), np.nan)
    labels[chosen], probabilities[chosen] = run.labels[chosen], list(drawn.values())
    strata_of = [names.get(row) for row in rows] if names else None
    return SampledLabels(rows, run.scores, labels, probabilities, None, strata_of)


def _claims(way: str, size: int, runs: int) -> str:
    generator = np.random.default_rng([SEED, 23])
    held, widths, errors = [], [], []
    for _ in range(runs):
        numbers = 1 + generator.binomial(8, 0.5, 500)
        row, count = np.repeat(np.arange(500), numbers), int(numbers.sum())
        labels = (generator.random(count) < generator.beta(1.75, 0.58, 500)[row]).astype(np.float64)
        is_unsure = generator.random(count) < generator.beta(1, 3, 500)[row]
        sure = np.where(labels > 0, generator.beta(12, 1, count), generator.beta(1, 12, count))
        beliefs = np.where(is_unsure, generator.uniform(0.2, 0.8, count), sure)
        sample = _choose(way, size, _Population(labels, (beliefs >= 0.5).astype(np.float64), beliefs), generator)
        if way != "naive":
            sample = replace(sample, groups=[f"{number:03}" for number in row], weights=1 / numbers[row])
        found = estimate_label_mean(sample).estimate
        held.append(_covers(found.interval(), 1.75 / 2.33))
        widths.append(_half(found.interval()))
        errors.append((found.value or 0.0) - 1.75 / 2.33)
    return f"{_cell(held, widths)}, {np.sqrt(np.mean(np.square(errors))):.3f}"


def _own_tables(runs: int) -> Iterator[str]:
    yield "\n**Labels drawn at random from the run** of 1,000 or 500 rows. Coverage (half width); in italics the "
    yield "labels alone (Clopper and Pearson) of the same draws; share of runs with scores at weight 1/2 or 1, "
    yield "the others being labels alone; passes / failures of a gate whose bar is the true mean (nominal 5 %).\n\n"
    yield _row("judge; good rows; rows", [f"{size} labels" for size in OWN]) + _row("---", ["---"] * len(OWN))
    for name, judge in JUDGES.items():
        for share, rows in ((0.7, 1000), (0.92, 1000), (0.7, 500)):
            cells = [_own(judge, size, share, rows, runs) for size in OWN]
            yield _row(f"{name}; {share:.0%}; {rows:,}".replace("%", " %").replace("  ", " "), cells)
    yield "\n**Rows in groups**, all rows of which are labelled: judge right in 98 % of good, 95 % of bad rows, labels "
    yield "and errors correlated within groups (0.3), 200 groups in the run. As above, without gates.\n\n"
    yield _row("groups; good rows", [f"{size} groups" for size in GROUPS]) + _row("---", ["---"] * len(GROUPS))
    for name, sizes in GROUP_SIZES.items():
        for share in (0.7, 0.92):
            cells = [_own_groups(sizes, size, share, runs) for size in GROUPS]
            yield _row(f"{name}; {share:.0%}".replace("%", " %"), cells)


def _row(title: str, cells: list[str]) -> str:
    return f"| {title} | {' | '.join(cells)} |\n"


def _labels(generator: np.random.Generator, count: int, share: float) -> Floats:
    return (generator.random(count) < share).astype(np.float64)


def _covers(interval: Interval, truth: float) -> bool:
    return interval.low <= truth <= interval.high


def _half(interval: Interval) -> float:
    return (interval.high - interval.low) / 2


def _percent(values: list[bool] | list[float]) -> str:
    return format_percent(float(np.mean(values))) if values else "none"


def _cell(held: list[bool], widths: list[float]) -> str:
    return f"{_percent(held)} ({np.mean(widths):.3f})" if held else "none"


def _elsewhere(judge: Draw, size: int, labelled: float, share: float, runs: int) -> str:
    generator = np.random.default_rng([SEED, 1])
    held, widths, passed = [], [], []
    for _ in range(runs):
        labels = _labels(generator, size, labelled)
        scores, run = judge(generator, labels), Units.from_values(judge(generator, _labels(generator, RUN, share)))
        error = estimate_judge_error(labels, scores, (0.0, 1.0))
        if error is None:
            continue
        estimate = correct_mean(error, run)
        held.append(_covers(estimate.interval(), share))
        widths.append(_half(estimate.interval()))
        passed.append(estimate.strict_limits(0.05).low > share)
    return f"{_cell(held, widths)}, {_percent(passed)}"


def _own(judge: Draw, size: int, share: float, count: int, runs: int) -> str:
    generator = np.random.default_rng([SEED, 3])
    rows = [f"{number:04}" for number in range(count)]

    def draw_run() -> SampledLabels:
        truth, labels = _labels(generator, count, share), np.full(count, np.nan)
        chosen = generator.choice(count, size, replace=False)
        labels[chosen] = truth[chosen]
        return SampledLabels(rows, judge(generator, truth), labels)

    return _of_samples(draw_run, share, runs, has_gates=True)


def _own_groups(sizes: Callable[[np.random.Generator], Floats], size: int, share: float, runs: int) -> str:
    generator = np.random.default_rng([SEED, 21])

    def draw_run() -> SampledLabels:
        group = np.repeat(np.arange(200), sizes(generator).astype(np.intp))
        names = [f"{number:03}" for number in group]

        def shared(mean: float) -> Floats:
            chances = generator.beta(mean * 7 / 3, (1 - mean) * 7 / 3, 200)[group]
            return (generator.random(len(group)) < chances).astype(np.float64)

        truth = shared(share)
        scores = np.where(np.where(truth > 0, shared(0.98), shared(0.95)) > 0, truth, 1 - truth)
        is_labelled = np.isin(group, generator.choice(200, size, replace=False))
        labels = np.where(is_labelled, truth, np.nan)
        return SampledLabels([f"{number:04}" for number in range(len(group))], scores, labels, None, names)

    return _of_samples(draw_run, share, runs, has_gates=False)


def _of_samples(draw_run: Callable[[], SampledLabels], truth: float, runs: int, *, has_gates: bool) -> str:
    held, widths, ways, wrong = [], [], [], []
    alone, alone_widths = [], []
    for _ in range(runs):
        sample = draw_run()
        found = estimate_label_mean(sample)
        interval, limits = found.estimate.interval(), found.estimate.strict_limits(0.05)
        held.append(_covers(interval, truth))
        widths.append(_half(interval))
        ways.append((found.is_powered,))
        wrong.append((limits.low > truth, limits.high < truth))
        labelled = sample.labelled
        groups = None if sample.groups is None else [sample.groups[row] for row in labelled]
        belief = BetaMean.from_units(Units.from_values(sample.labels[labelled], groups), (0.0, 1.0))
        before = ExactEstimate(belief.mean, belief).limits(0.025)
        alone.append(_covers(before, truth))
        alone_widths.append(_half(before))
    shares, errors = (" / ".join(_percent(list(of)) for of in zip(*pairs, strict=True)) for pairs in (ways, wrong))
    gates = f", {errors}" if has_gates else ""
    return f"{_cell(held, widths)}, *{_cell(alone, alone_widths)}*, {shares}{gates}"


def _figures(size: int, share: float, runs: int) -> str:
    generator = np.random.default_rng([SEED, 7])

    def draw(rows: int) -> tuple[Floats, Floats]:
        labels = _labels(generator, rows, share)
        return labels, np.where(labels > 0, generator.beta(12, 1.5, rows), generator.beta(2, 4, rows))

    labels, scores = draw(100_000)
    whole, yes = np.ones((1, 100_000)), labels > 0.5
    auroc = float(weighted_statistics.auroc(yes, scores)(whole)[0])
    best = float(weighted_statistics.best_threshold(yes, scores)(whole)[0])
    kappa = float(weighted_statistics.kappa_of(weighted_statistics.confusion_counts(yes, scores >= best)(whole))[0])
    held: dict[str, list[bool]] = {"auroc": [], "kappa": []}
    above = []
    for seed in range(runs):
        sample = draw(size)
        if len(np.unique(sample[0])) < 2:
            continue
        figures = measure_human_agreement(LabelledScores(Scale.BINARY, *sample, (0.0, 1.0)), seed).figures
        for name, truth in (("auroc", auroc), ("kappa", kappa)):
            if name in figures and (interval := figures[name].interval) is not None:
                held[name].append(_covers(interval, truth))
                above += [interval.low > truth] if name == "kappa" else []
    return f"{_percent(held['auroc'])}, {_percent(held['kappa'])}, {_percent(above)}"


def _by_score(judge: Draw, size: int, runs: int) -> str:
    generator = np.random.default_rng([SEED, 19])
    rows = [f"{number:04}" for number in range(1000)]
    place = {row: number for number, row in enumerate(rows)}
    parts = []
    for is_stratified in (True, False):
        held, widths, errors = [], [], []
        for _ in range(runs):
            truth = _labels(generator, 1000, 0.7)
            scores = judge(generator, truth)
            names: dict[str, str] = {}
            if is_stratified:
                of_row = dict(zip(rows, scores.tolist(), strict=True))
                drawn, names = draw_from_strata(of_row, size, 5, generator)
            else:
                drawn = draw(rows, size, None, generator)
            chosen = [place[row] for row in drawn]
            labels, probabilities = np.full(1000, np.nan), np.full(1000, np.nan)
            labels[chosen], probabilities[chosen] = truth[chosen], list(drawn.values())
            strata = [names.get(row) for row in rows] if is_stratified else None
            found = estimate_label_mean(SampledLabels(rows, scores, labels, probabilities, None, strata)).estimate
            held.append(_covers(found.interval(), 0.7))
            widths.append(_half(found.interval()))
            errors.append((found.value or 0.0) - 0.7)
        parts.append(f"{_cell(held, widths)}, {np.sqrt(np.mean(np.square(errors))):.3f}")
    return f"{parts[0]}; *{parts[1]}*"


def _look_tables(runs: int) -> Iterator[str]:
    yield "\n**Looks.** Share of samples of which at least one look errs (nominal: at most 5 %), with limits of a "
    yield "single look; with those of counted looks. A gate errs if it passes / fails at a bar that is the true mean, "
    yield "70 %.\n\n"
    yield _row("what is looked at", list(LOOKS)) + _row("---", ["---"] * len(LOOKS))
    for name in ("90 %, 90 %", "85 %, 75 %", "70 %, 60 %", "scores in between", "mostly 1"):
        yield _row(f"gate; {name}", [_looked_gate(JUDGES[name], looks, runs) for looks in LOOKS.values()])
    for name, share in SURENESS.items():
        yield _row(f"cascade, 10 %; {name}", [_looked_cascade(share, looks, runs) for looks in LOOKS.values()])


def _looked_gate(judge: Draw, looks: Sequence[int], runs: int) -> str:
    generator = np.random.default_rng([SEED, 41])
    rows = [f"{number:04}" for number in range(1000)]
    wrong = np.zeros((runs, 2, 2), dtype=np.bool_)
    for run in range(runs):
        truth = _labels(generator, 1000, 0.7)
        scores, order = judge(generator, truth), generator.permutation(1000)
        for look, size in enumerate(looks, start=1):
            labels = np.full(1000, np.nan)
            labels[order[:size]] = truth[order[:size]]
            once = estimate_label_mean(SampledLabels(rows, scores, labels)).estimate
            for way, estimate in enumerate((once, LookedAt.from_estimate(once, look))):
                limits = estimate.strict_limits(0.05)
                wrong[run, way] |= [limits.low > 0.7, limits.high < 0.7]
    return "; ".join(" / ".join(_percent(wrong[:, way, end].tolist()) for end in (0, 1)) for way in (0, 1))


def _looked_cascade(share: Callable[[Floats], Floats], looks: Sequence[int], runs: int) -> str:
    generator = np.random.default_rng([SEED, 43])
    every = 0.5 + 0.5 * np.sqrt(generator.random(100_000))
    risks = share(every)
    wrong = np.zeros((runs, 2), dtype=np.bool_)
    for run in range(runs):
        sureness = 0.5 + 0.5 * np.sqrt(generator.random(VERDICTS))
        said = (generator.random(VERDICTS) < share(sureness)).astype(np.float64)
        order = generator.permutation(VERDICTS)
        for look, size in enumerate(looks, start=1):
            known = np.full(VERDICTS, np.nan)
            known[order[:size]] = said[order[:size]]
            for way, tail in enumerate((0.05, tail_of_look(0.05, look))):
                point = measure_sure_answers(sureness, known, None, tail).choose(0.1)
                wrong[run, way] |= point is not None and risks[every >= point.least].mean() > 0.1
    return "; ".join(_percent(wrong[:, way].tolist()) for way in (0, 1))


def _limit_tables(runs: int) -> Iterator[str]:
    yield "\n**Near the limit of a judge** that was right in 90 % of good and 80 % of bad labelled rows: refused; "
    yield "points among the intervals; passes of a gate at the true mean (nominal 5 %). 300 rows, 97 % good.\n\n"
    sizes = (300, 100, 50)
    yield _row("judge now, on good rows", [f"{size} labels" for size in sizes]) + _row("---", ["---"] * len(sizes))
    for now in (0.97, 0.9):
        yield _row(format_percent(now), [_near_limit(now, size, runs) for size in sizes])
    yield "\n**People of different strictness**, 100 labels each of other rows: share of samples with a warning.\n\n"
    yield _row("shares of yes", ["told"]) + _row("---", ["---"])
    generator = np.random.default_rng([SEED, 47])
    for shares in ((0.85, 0.85), (0.85, 0.6), (0.9, 0.9, 0.9)):
        given = [
            {str(who): _labels(generator, 100, each).tolist() for who, each in enumerate(shares)} for _ in range(runs)
        ]
        yield _row(", ".join(map(format_percent, shares)), [_percent([bool(describe_strictness(of)) for of in given])])


def _near_limit(now: float, size: int, runs: int) -> str:
    generator = np.random.default_rng([SEED, 45])
    refused, points, passed = [], [], []
    for _ in range(runs):
        labels = _labels(generator, size, 0.7)
        error = estimate_judge_error(labels, _binary(0.9, 0.8)(generator, labels), (0.0, 1.0))
        run = Units.from_values(_binary(now, 0.8)(generator, _labels(generator, RUN, 0.97)))
        if error is None:
            continue
        refused.append(bool(describe_outside(error, run)))
        estimate = correct_mean(error, run)
        interval = estimate.interval()
        points.append(not refused[-1] and interval.low == interval.high)
        passed.append(not refused[-1] and estimate.strict_limits(0.05).low > 0.97)
    return f"{_percent(refused)}; {_percent(points)}; {_percent(passed)}"


if __name__ == "__main__":
    main()
