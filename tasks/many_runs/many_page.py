"""Render several runs as one HTML page that works offline and contains no script."""

from collections.abc import Sequence
from dataclasses import dataclass

from tasks.documents.blocks import Items
from tasks.documents.figures import format_fixed, format_number
from tasks.documents.html import to_html
from tasks.many_runs.compared_runs import ManyRuns, RankedMetric
from tasks.many_runs.many_words import (
    caution,
    effort,
    format_cost,
    losses,
    sentences,
    table_of_runs,
    title_of,
    verdict,
)
from tasks.reports.page import render_page

WIDTH, HEIGHT, MARGIN = 360, 230, 30
"""Size and margin of a drawing, in the units of its coordinates."""
BAR = 260
"""Width of the drawing of how far a run is behind, in the units of its coordinates."""


@dataclass(frozen=True, slots=True)
class Point:
    """A run in a drawing of quality against cost.

    Args:
        number: Its number in the order of the table.
        on_front: True if no run beats it in both.
        may_be_best: True if it may be the best.
    """

    number: int
    name: str
    x: float
    y: float
    on_front: bool
    may_be_best: bool


@dataclass(frozen=True, slots=True)
class Drawing:
    """Quality against a cost.

    Args:
        line: Corners of the line through the front, as SVG writes them.
        ends: Least and greatest cost, least and greatest mean, as text.
    """

    cost: str
    points: tuple[Point, ...]
    line: str
    ends: tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class Bar:
    """A drawing of the distance of a run to the best: the point of its mean, and the end of the limit."""

    number: int
    name: str
    mean: str
    behind: str
    at_most: str
    dot: float
    end: float
    may_be_best: bool


def many_page(many: ManyRuns) -> str:
    """Render the page of several runs."""
    metrics = [
        {
            "title": title_of(metric),
            "verdict": to_html([Items((verdict(many, metric),))]),
            "bars": _bars(many, metric),
            "reach": format_number(_reach(metric)),
        }
        for metric in many.metrics
    ]
    content = {
        "many": many,
        "caution": to_html(caution(many)),
        "verdicts": to_html([Items(tuple(verdict(many, metric) for metric in many.metrics))]),
        "table": to_html([table_of_runs(many)]),
        "sentences": to_html([Items(tuple(sentences(many)))]),
        "drawings": [_draw(many, cost) for cost in many.costs],
        "quality": title_of(many.metrics[0]),
        "metrics": metrics,
        "losses": to_html(losses(many)),
        "effort": to_html(effort(many)),
        "width": WIDTH,
        "height": HEIGHT,
        "margin": MARGIN,
        "bar_width": BAR,
    }
    return render_page("many_runs.html.j2", content, ("report.css", "many_runs.css"))


def _reach(metric: RankedMetric) -> float:
    """Return the greatest distance to draw."""
    return max(max(run.behind, run.at_most or 0.0) for run in metric.ranking.runs) or 1.0


def _bars(many: ManyRuns, metric: RankedMetric) -> list[Bar]:
    reach = _reach(metric)
    numbers = {place: number for number, place in enumerate(many.metrics[0].order, start=1)}
    return [
        Bar(
            number=numbers[place],
            name=many.runs[place].name,
            mean=format_fixed(run.mean),
            behind=format_fixed(run.behind),
            at_most="-" if run.at_most is None else format_fixed(run.at_most),
            dot=round(run.behind / reach * BAR, 1),
            end=round(max(run.at_most or 0.0, run.behind) / reach * BAR, 1),
            may_be_best=run.may_be_best,
        )
        for place, run in ((place, metric.ranking.runs[place]) for place in metric.order)
    ]


def _draw(many: ManyRuns, cost: str) -> Drawing:
    ranked = many.metrics[0].ranking.runs
    xs = _scale([run.costs[cost] for run in many.runs], MARGIN, WIDTH - MARGIN)
    ys = _scale([-run.behind for run in ranked], HEIGHT - MARGIN, MARGIN)
    front = many.front(cost)
    points = tuple(
        Point(number, many.runs[place].name, xs[place], ys[place], place in front, ranked[place].may_be_best)
        for number, place in enumerate(many.metrics[0].order, start=1)
    )
    corners = [f"{xs[place]},{ys[place]}" for place in front]
    spent, means = [run.costs[cost] for run in many.runs], [run.mean for run in ranked]
    worst, best = sorted((min(means), max(means)), reverse=means[many.metrics[0].ranking.leader] == min(means))
    ends = (format_cost(min(spent)), format_cost(max(spent)), format_fixed(worst), format_fixed(best))
    return Drawing(cost, points, " ".join(corners), ends)


def _scale(values: Sequence[float], first: float, last: float) -> list[float]:
    """Return the place of each value between those of the least and of the greatest one."""
    low, high = min(values), max(values)
    width = (high - low) or 1.0
    return [round(first + (last - first) * (value - low) / width, 1) for value in values]
