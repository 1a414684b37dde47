"""Describe the metrics for `assay metrics` and for the pages of the documentation."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from textwrap import indent
from typing import Any

from metric_core.columns import (
    KEY_POINTS,
    REFERENCE,
    REFERENCE_CONTEXT_IDS,
    REFERENCE_CONTEXTS,
    RELEVANCE_JUDGMENTS,
    RUBRICS,
)
from metric_core.declarations.metric import Metric, MetricRequest, Parameter
from metric_core.metrics.guides import read_guide
from metric_core.reasons import missing_column
from metric_core.records import Direction
from metric_core.stages import any_judged
from tasks.documents.figures import describe_bounds

INTRODUCTION = """\
# Metrics

Each metric has a page with its formula, parameters and a worked example, and says when a score is undefined.
`assay metrics NAME` shows the same on the terminal. `assay metrics --markdown` writes this page, and
`assay metrics NAME --markdown` that of a metric.
"""
"""Beginning of the overview."""

COMMON = """\
## What holds for all metrics

- **A cell** is a value, undefined or failed. *Undefined*: the metric has no meaning for the row, and the reason says
  why. *Failed*: a model gave no usable answer. Neither is ever counted as 0; a mean is over the scored rows, and the
  counts are shown beside it.
- **A missing column** makes the metrics that need it undefined for the row: `no reference`. Other metrics are not
  affected.
- **No contexts.** If a metric asks whether the contexts support something, an empty list supports nothing: 0. If it
  asks how they are ranked, nothing was ranked: undefined.
- **No claims.** A text without claims (a greeting, a refusal) leaves nothing to count: undefined, unless the page of
  the metric says otherwise.
- **Verdicts** count as 0 or 1, or as the judge's probability of yes (`verdict`); formulas are written for 0 and 1, and
  take expected values with probabilities.
- **Claims and verdicts are shared**: each is asked for once per row, whichever metrics read it.
- **Judge**: `any` includes the built-in one, which is not a language model; `language model` metrics are undefined with
  it.
- **Names**: a metric has one name and any number of others, also those of Ragas. Parameters are written
  `name(parameter=value)`, and become part of the name of the scores.

"The documents" are the descriptions of these metrics that the project started from: the documentation of Ragas, and
lectures on it. Where they contradict each other or the code of Ragas (version 0.4.3), the last paragraph of a page says
what was chosen, and why.
"""

_HEADINGS = ("metric", "what it measures", "columns", "judge", "by default")


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the description of a metric.

    Args:
        title: Title; empty for the first part.
        lines: Sentences or facts.
        verbatim: True for lines that are shown as they are.
        rows: Rows of a table, its headings first.
    """

    title: str
    lines: tuple[str, ...] = ()
    verbatim: bool = False
    rows: tuple[tuple[str, ...], ...] = ()


def describe_metric(metric: Metric) -> list[Section]:
    """Return the description of a metric; one that a user defined has no formula and no example."""
    sections = [Section("", (metric.summary,)), Section("", rows=tuple(_facts(metric)))]
    guide = None if metric.origin else read_guide(metric.name)
    if guide is not None:
        sections.append(Section("Formula", tuple(guide.formula.splitlines()), verbatim=True))
        sections.append(Section("Notes", guide.notes))
    sections.append(Section("Parameters", rows=tuple(_parameters(metric))))
    sections.append(Section("Undefined", rows=tuple(_undefined(metric))))
    if guide is not None:
        sections.append(Section("Example", tuple(guide.example.splitlines()), verbatim=True))
        sections.append(Section("Differences from Ragas and the documents", guide.differences))
    return [section for section in sections if section.lines or len(section.rows) > 1]


def render_overview(metrics: Iterable[Metric]) -> str:
    """Return the page that lists all metrics, by what the data must have, in Markdown."""
    rows: dict[str, list[tuple[str, ...]]] = {}
    for metric in metrics:
        request = default_request(metric)
        judge = judge_of(metric)
        default = (
            ("yes, with such a judge" if request.needs_language_model else "yes") if metric.in_default_suite else "no"
        )
        cells = (", ".join(needed_columns(request)) or "any", judge, default)
        link = f"[{metric.name}](metrics/{metric.name}.md)"
        rows.setdefault(_heading_of(request.columns), []).append((link, metric.summary, *cells))
    sections = [f"## {title}\n\n{_table([_HEADINGS, *found])}" for title, found in rows.items()]
    return "\n".join([INTRODUCTION, *sections, COMMON])


def render_guide(metric: Metric) -> str:
    """Return the page of a metric in Markdown."""
    common = "[Metrics](../metrics.md) lists all, and says what holds for each.\n"
    return "\n".join([f"# {metric.name}\n", *map(_markdown, describe_metric(metric)), common])


def _heading_of(columns: Collection[str]) -> str:
    """Return the heading of the metrics that need some columns."""
    if not set(columns) - {RUBRICS}:
        return "By criteria of your own"
    if not set(columns).isdisjoint({REFERENCE_CONTEXTS, REFERENCE_CONTEXT_IDS, RELEVANCE_JUDGMENTS}):
        return "With passages that are known to be relevant"
    return (
        "With reference answers"
        if {REFERENCE, KEY_POINTS} & set(columns)
        else "With questions, answers and passages alone"
    )


def default_request(metric: Metric) -> MetricRequest:
    """Return a request for a metric with its defaults, also where a parameter is required."""
    return MetricRequest(
        metric, {name: parameter.default for name, parameter in metric.parameters.items()}, metric.name
    )


def needed_columns(request: MetricRequest) -> tuple[str, ...]:
    """Return the columns that a metric needs: those of a sample, and its own."""
    return (*request.columns, *request.own_columns)


def judge_of(metric: Metric) -> str:
    """Return the kind of judge that a metric needs: none, any or language model."""
    request = default_request(metric)
    if request.needs_language_model:
        return "language model"
    return "any" if any_judged(request.products) else "none"


def range_of(metric: Metric) -> str:
    """Return the range of a metric with its default parameters; `varies` if the user or the row defines it."""
    bounds = default_request(metric).bounds
    return "varies" if bounds is None else describe_bounds(bounds)


def allowed_values(parameter: Parameter) -> str:
    """Return the allowed values of a parameter in words.

    >>> allowed_values(Parameter(summary="", choices=("a", None)))
    'a, unset'
    """
    if parameter.choices:
        return ", ".join(_format_value(choice) for choice in parameter.choices)
    wanted = None if parameter.check is None else parameter.check(object())
    return "any" if wanted is None else wanted.replace(" or nothing", ", or unset")


def _facts(metric: Metric) -> Iterator[tuple[str, ...]]:
    request = default_request(metric)
    optional = request.optional_columns
    better = {Direction.HIGHER: "higher", Direction.LOWER: "lower", Direction.NEITHER: "neither"}
    yield ("", "")
    yield ("columns", ", ".join(needed_columns(request)) or "none required")
    if optional:
        yield ("columns used if present", ", ".join(optional))
    yield ("range", range_of(metric))
    yield ("better", better[metric.direction])
    yield ("judge", judge_of(metric))
    condition = "the judge is a language model and " if request.needs_language_model else ""
    default = f"yes, if {condition}the data has the columns" if metric.in_default_suite else "no"
    yield ("computed by default", default)
    yield ("other names", ", ".join(metric.aliases) or "none")
    yield ("source", metric.source)


def _parameters(metric: Metric) -> Iterator[tuple[str, ...]]:
    yield ("parameter", "allowed values", "default", "meaning")
    for name, parameter in metric.parameters.items():
        default = "required" if parameter.required else _format_value(parameter.default)
        yield (name, allowed_values(parameter), default, parameter.summary)


def _undefined(metric: Metric) -> Iterator[tuple[str, ...]]:
    yield ("reason", "when")
    missing = {
        missing_column(column): "the row has no such value" for column in needed_columns(default_request(metric))
    }
    yield from (missing | dict(metric.undefined)).items()


def _format_value(value: Any) -> str:
    if value is None:
        return "unset"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "; ".join(f"{key}: {text}" for key, text in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _markdown(section: Section) -> str:
    title = f"**{section.title}**\n\n" if section.title else ""
    if section.rows:
        return title + _table(section.rows)
    if section.verbatim:
        return title + "```text\n" + "\n".join(section.lines) + "\n```\n"
    if not section.title:
        return "\n".join(section.lines) + "\n"
    return title + "\n".join(f"- {indent(line, '  ').lstrip()}" for line in section.lines) + "\n"


def _table(rows: Iterable[Sequence[str]]) -> str:
    heading, *others = ([cell.replace("|", "\\|") for cell in row] for row in rows)
    lines = [heading, ["---"] * len(heading), *others]
    return "\n".join(f"| {' | '.join(row)} |" for row in lines) + "\n"
