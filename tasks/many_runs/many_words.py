"""Show several runs in words and tables, for terminal, Markdown and page, and as JSON."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from metric_core.records import Direction
from metric_core.statistics.resampling import LEVEL
from tasks.documents.blocks import Block, Caution, Items, Line, Section, Span, Table, Text, Tone, make_table, own
from tasks.documents.figures import format_fixed
from tasks.documents.run.summary_rows import LOWER_IS_BETTER
from tasks.many_runs.compared_runs import ManyRuns, RankedMetric
from tasks.runtime.wording import format_percent

_ROWS_NAMED = 3
_NAMED = 12
"""Maximum number of runs that a sentence names."""


def title_of(metric: RankedMetric) -> str:
    """Return a metric's key, the scale of its rows if they have one, and an arrow if lower is better."""
    name = metric.metric if metric.scale is None else f"{metric.metric} on {metric.scale}"
    return f"{name} {LOWER_IS_BETTER}" if metric.direction is Direction.LOWER else name


def verdict(many: ManyRuns, metric: RankedMetric) -> Text:
    """Return which runs may be the best by a metric."""
    best, runs, ranking = metric.best, len(many.runs), metric.ranking
    what = (metric.metric, own(": "))
    if not ranking.is_decided:
        return (*what, own(f"{ranking.rows:,} rows in all runs are too few to tell the {runs} runs apart"))
    if len(best) == 1:
        return (*what, many.runs[best[0]].name, own(f" is the best of {runs}"))
    if len(best) == runs:
        return (*what, own(f"these {ranking.rows:,} rows cannot tell the {runs} runs apart"))
    return (*what, own(f"{len(best)} of {runs} runs may be the best: "), name_runs(many, best))


def name_runs(many: ManyRuns, places: Sequence[int]) -> str:
    """Return the names of runs, the first of them if there are many."""
    names = [many.runs[place].name for place in places[:_NAMED]]
    return ", ".join(names) + (f" and {len(places) - _NAMED} more" if len(places) > _NAMED else "")


def luck_sentence(many: ManyRuns, metric: RankedMetric) -> Span:
    """Return how much luck there is in picking the run with the best mean."""
    ranking = metric.ranking
    means = [run.mean for run in ranking.runs]
    lead = abs(means[ranking.leader] - sum(means) / len(means))
    return own(
        f"If all {len(many.runs)} runs were equally good, the one that looks best would look "
        f"{format_fixed(ranking.luck)} better than it is, by luck alone. Here it is "
        f"{format_fixed(lead)} better than the average of all."
    )


def cheapest_sentence(many: ManyRuns, cost: str) -> Text:
    """Return which of the runs that may be the best costs least."""
    metric = many.metrics[0]
    leader = metric.ranking.leader
    cheapest = min(metric.best, key=lambda place: many.runs[place].costs[cost])
    found = (own(f"cheapest of the runs that may be the best, by {cost}: "), many.runs[cheapest].name)
    spent, most = (own(format_cost(many.runs[place].costs[cost])) for place in (cheapest, leader))
    if cheapest == leader:
        return (*found, own(" with "), spent, own(", which also has the best mean"))
    return (
        *found,
        own(" with "),
        spent,
        own("; "),
        many.runs[leader].name,
        own(", which has the best mean, has "),
        most,
    )


def format_cost(value: float) -> str:
    """Return a cost with three significant digits.

    >>> format_cost(1234.5), format_cost(0.01234)
    ('1,234', '0.0123')
    """
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def blocks_of(many: ManyRuns) -> Iterator[Block]:
    """Yield the comparison as a document, without a title."""
    yield from caution(many)
    for metric in many.metrics:
        yield Line(verdict(many, metric), is_strong=True)
    yield table_of_runs(many)
    yield Items(tuple(sentences(many)))
    for place, metric in enumerate(many.metrics):
        words = (own("Behind the best: "), metric.metric)
        yield Section(words, (ranking_table(many, metric),), is_folded=place > 0, is_long=place > 0)
    yield Section(own("What each run loses"), tuple(losses(many)))
    yield Section(own("What the evaluation took"), tuple(effort(many)))


def caution(many: ManyRuns) -> Iterator[Block]:
    """Yield why the runs are not like for like, if they are not."""
    if many.not_alike:
        yield Caution(
            "Not like for like", "The scores differ for other reasons than the system under test:", many.not_alike
        )


def table_of_runs(many: ManyRuns) -> Table:
    """Return a row per run: its means, where it may be the best, and its costs; the best means first."""
    headings = ("run", *map(title_of, many.metrics), *many.costs)
    rows: list[tuple[Text, ...]] = []
    for place in many.metrics[0].order:
        run, ranked = many.runs[place], [metric.ranking.runs[place] for metric in many.metrics]
        means = (_mark(format_fixed(each.mean), each.may_be_best) for each in ranked)
        rows.append((run.name, *means, *(format_cost(run.costs[name]) for name in many.costs)))
    return make_table(headings, rows)


def _mark(mean: str, may_be_best: bool) -> Span:
    return own(f"{mean} *", Tone.GOOD) if may_be_best else own(f"{mean}  ")


def sentences(many: ManyRuns) -> Iterator[Text]:
    """Yield how to read the table, and what else a reader should know before picking a run."""
    metrics = f" and {len(many.metrics)} metrics" * (len(many.metrics) > 1)
    yield own(
        f"Means over the rows that all runs have scored, of {many.rows:,} that all have. Runs with a * may be the "
        f"best. Whichever run truly is the best is among them in {format_percent(LEVEL)} of such comparisons of "
        f"{len(many.runs)} runs{metrics}."
    )
    if many.by is not None:
        yield (own("rows with the same "), many.by, own(" count as one group"))
    for metric in many.metrics:
        yield (
            (metric.metric, own(": "), luck_sentence(many, metric))
            if len(many.metrics) > 1
            else luck_sentence(many, metric)
        )
    if many.metrics[0].ranking.is_decided:
        yield from (
            cheapest_sentence(many, cost) for cost in many.costs if len({run.costs[cost] for run in many.runs}) > 1
        )
    for metric in many.metrics:
        yield from _missing(many, metric)


def _missing(many: ManyRuns, metric: RankedMetric) -> Iterator[Text]:
    lacking = [(run.name, count) for run, count in zip(many.runs, metric.unscored, strict=True) if count]
    if lacking:
        counts = ", ".join(f"{name} {count:,}" for name, count in lacking)
        yield (metric.metric, own(": rows without a score, which count in no run: "), counts)
    if metric.kept:
        reason = own(" may be the best only because of scores that are missing by more than chance")
        yield (metric.metric, own(": "), name_runs(many, metric.kept), reason)


def ranking_table(many: ManyRuns, metric: RankedMetric) -> Table:
    """Return how far each run is behind the best by a metric."""
    rows = []
    for place in metric.order:
        run = metric.ranking.runs[place]
        at_most = "-" if run.at_most is None else format_fixed(run.at_most)
        outcome = own("may be the best", Tone.GOOD) if run.may_be_best else own("is not the best", Tone.MUTED)
        rows.append((many.runs[place].name, format_fixed(run.mean), format_fixed(run.behind), at_most, outcome))
    return make_table(("run", "mean", "behind", "at most", "outcome"), rows, ("mean", "behind", "at most"))


def losses(many: ManyRuns) -> Iterator[Block]:
    """Yield the diagnosis of each run, and the rows that it answers worse than the run with the best mean."""
    metric = many.metrics[0]
    classes = [name for name in many.runs[0].diagnosis if any(run.diagnosis.get(name) for run in many.runs)]
    if classes:
        counts = [
            (many.runs[place].name, *(f"{many.runs[place].diagnosis.get(name, 0):,}" for name in classes))
            for place in metric.order
        ]
        yield Line(own("Answers of each kind:", Tone.MUTED))
        yield make_table(("run", *classes), counts)
    leader = many.runs[metric.ranking.leader].name
    rows = [
        (
            many.runs[place].name,
            f"{len(metric.losses[place].worse):,}",
            f"{metric.losses[place].better:,}",
            ", ".join(metric.losses[place].worse[:_ROWS_NAMED]) or "-",
        )
        for place in metric.order
        if place != metric.ranking.leader
    ]
    yield Line((own("Rows that score worse or better than in "), leader, own(" by "), metric.metric, own(":")))
    yield make_table(("run", "worse", "better", "worst of them"), rows, ("worse", "better"))


def effort(many: ManyRuns) -> Iterator[Block]:
    """Yield what the judge was asked for each run, and what cached answers saved."""
    asked, questions = sum(run.asked for run in many.runs), sum(run.questions for run in many.runs)
    if questions:
        share = format_percent(asked / questions)
        yield Line(own(f"{asked:,} of {questions:,} questions were asked ({share}); the other answers were cached."))
    rows = [
        (
            run.name,
            f"{run.questions:,}",
            f"{run.asked:,}",
            f"{run.tokens:,}",
            "-" if run.seconds is None else f"{run.seconds:,.0f}",
        )
        for run in many.runs
    ]
    yield make_table(("run", "questions", "asked", "tokens", "seconds"), rows)


def many_to_dict(many: ManyRuns) -> Mapping[str, Any]:
    """Return the comparison as JSON content; lists of runs are in the order of `runs`, and places begin with 0."""
    content = asdict(many)
    for metric, entry in zip(many.metrics, content["metrics"], strict=True):
        entry["best"] = [many.runs[place].name for place in metric.best]
    fronts = {cost: [many.runs[place].name for place in many.front(cost)] for cost in many.costs}
    return {"like_for_like": not many.not_alike, "level": LEVEL, **content, "fronts": fronts}
