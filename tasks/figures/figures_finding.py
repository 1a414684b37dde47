"""Show the quantiles of the figures of a run: in the terminal, the report, the history and the metrics file."""

from collections.abc import Iterator, Mapping, Sequence

from metric_core.records import Direction
from metric_core.statistics.resampling import Interval
from metric_core.statistics.summary import Distribution, MetricSummary
from tasks.documents.blocks import Block, Section, make_table, own
from tasks.documents.figures import format_number
from tasks.figures.figure_quantiles import QUANTILES, FigureQuantiles, FigureRecord, QuantileRecord, count_quantiles
from tasks.findings.finding import Finding, RunRecords
from tasks.findings.parts import Figure
from tasks.record.run_summary import RunSummary


def lines(run: RunRecords) -> Iterator[str]:
    """Yield the quantiles of each figure."""
    for metric, figure in run.summary.find_all(FigureQuantiles).items():
        parts = [f"{name} {_words(quantile)}" for name, quantile in figure.quantiles.items()]
        yield f"{metric}: {', '.join(parts)}"


def section(run: RunRecords) -> Sequence[Block]:
    """Return a table of the quantiles with their intervals."""
    rows = [
        (metric, f"{figure.rows:,}", *(_words(figure.quantiles[name]) for name in QUANTILES))
        for metric, figure in run.summary.find_all(FigureQuantiles).items()
    ]
    heading = (
        "figure",
        "rows",
        *(f"{name}: {share * 100:g} % of the rows at most" for name, share in QUANTILES.items()),
    )
    return [Section(own("Figures of the system"), (make_table(heading, rows),))]


def figures(run: RunRecords) -> Iterator[Figure]:
    """Yield the quantiles and the ends of their intervals."""
    for metric, figure in run.summary.find_all(FigureQuantiles).items():
        for name, quantile in figure.quantiles.items():
            labels = {"metric": metric, "quantile": f"{QUANTILES[name]:g}"}
            text = "Value that this share of the rows has at most"
            yield Figure("quantile", f"{text}.", quantile.value, labels)
            yield Figure("quantile_low", f"{text}: lower end of its 95 % interval.", quantile.low, labels)
            yield Figure("quantile_high", f"{text}: upper end of its 95 % interval.", quantile.high, labels)


def find_recorded(summary: RunSummary) -> Iterator[tuple[str, str, MetricSummary]]:
    """Yield the quantiles as metrics of the history, over all rows."""
    directions: Mapping[str, Direction] = {each.metric: each.direction for each in summary.metrics}
    for metric, figure in summary.find_all(FigureQuantiles).items():
        for name, quantile in figure.quantiles.items():
            yield "", "", _as_metric(f"{metric}.{name}", directions[metric], figure, quantile)


def _as_metric(name: str, direction: Direction, figure: FigureRecord, quantile: QuantileRecord) -> MetricSummary:
    has_ends = quantile.low is not None and quantile.high is not None
    interval = Interval(quantile.low or 0.0, quantile.high or 0.0) if has_ends else None
    value = quantile.value
    distribution = Distribution(figure.rows, value, interval, value, None, value, value)
    return MetricSummary(name, direction, figure.rows, 0, 0, distribution, {}, {})


def _words(quantile: QuantileRecord) -> str:
    """Return a quantile with its interval.

    >>> _words(QuantileRecord(value=3.1, low=2.6, high=4.4)), _words(QuantileRecord(value=3.1, low=2.6, high=None))
    ('3.1 (2.6 to 4.4)', '3.1 (2.6 or more)')
    """
    value, low, high = quantile.value, quantile.low, quantile.high
    if low is None:
        return format_number(value)
    ends = f"{format_number(low)} or more" if high is None else f"{format_number(low)} to {format_number(high)}"
    return f"{format_number(value)} ({ends})"


FIGURES = Finding(
    summary=(FigureQuantiles,),
    count=count_quantiles,
    lines=lines,
    section=section,
    figures=figures,
    recorded=find_recorded,
)
