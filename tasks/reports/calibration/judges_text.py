"""Describe a comparison of judges on the same labels in words and table rows."""

from collections.abc import Iterator, Mapping

from metric_core.calibration.judge_comparison import JudgeComparison
from metric_core.statistics.resampling import Interval

HEADINGS = ("judge", "agreement", "95 % interval", "less the best", "95 % interval", "errors")


def comparison_rows(comparison: JudgeComparison) -> Iterator[tuple[str, ...]]:
    """Yield a row of a table for each judge, in the order of HEADINGS."""
    for judge in comparison.judges:
        is_best = judge is comparison.judges[0]
        yield (
            judge.name,
            f"{judge.agreement:.3f}",
            _interval(judge.interval),
            "best" if is_best else f"{judge.difference:+.3f}",
            "" if is_best else _interval(judge.difference_interval),
            f"{judge.errors:,}",
        )


def overlap_lines(comparison: JudgeComparison) -> Iterator[str]:
    """Yield sentences on the errors that judges have in common.

    >>> from metric_core.calibration.judge_comparison import ErrorOverlap
    >>> list(overlap_lines(JudgeComparison(9, 0.02, (), (ErrorOverlap("a", "b", 2, 1, 3),), 2)))
    ['a and b both err on 2 rows; only a on 1, only b on 3', 'all judges err on 2 of 9 rows: look at their labels']
    """
    for each in comparison.overlaps:
        yield (
            f"{each.first} and {each.second} both err on {each.both:,} rows; only {each.first} on {each.only_first:,}, "
            f"only {each.second} on {each.only_second:,}"
        )
    if comparison.wrong_for_all:
        yield f"all judges err on {comparison.wrong_for_all:,} of {comparison.rows:,} rows: look at their labels"


def recommendation(comparison: JudgeComparison, recommended: str | None, by: str, known: Mapping[str, bool]) -> str:
    """Return the sentence that recommends a judge, or says why none can be recommended.

    Args:
        recommended: Name of the judge; None if it cannot be told.
        by: Unit of the costs that decided, `money` or `tokens`.
        known: Name of each judge -> whether its cost is known.
    """
    able = [judge.name for judge in comparison.judges if judge.is_not_worse]
    best = comparison.judges[0].name
    if not able:
        return (
            f"no judge is recommended: {best} agrees most, but {comparison.rows:,} rows are too few to show that any "
            f"judge is at most {comparison.margin:g} worse than the others; label more rows"
        )
    if recommended is None:
        unknown = ", ".join(name for name in able if not known.get(name))
        return (
            f"at most {comparison.margin:g} worse than {best}: {', '.join(able)}; which of them is cheapest is not "
            f"known, because all answers of {unknown} were cached (--refresh verdicts asks again)"
        )
    if len(able) == 1:
        return (
            f"recommended: {recommended}; {comparison.rows:,} rows are too few to show that another judge is at most "
            f"{comparison.margin:g} worse"
        )
    caution = "; a token of a large model costs more than one of a small model: set [prices]" if by == "tokens" else ""
    return (
        f"recommended: {recommended}, the cheapest by {by} of those that are at most {comparison.margin:g} worse than "
        f"{best}: {', '.join(able)}{caution}"
    )


def _interval(interval: Interval | None) -> str:
    return "too few rows" if interval is None else f"{interval.low:.3f} to {interval.high:.3f}"
