"""Figures of the system that answers: a number of each row as it is, such as the seconds that an answer took.

A figure has no greatest value. Its intervals allow for rows above all that were seen, and alarms compare each row with
the same row of the baseline by their ratio.
"""

from math import inf

from metric_core import columns as c
from metric_core.columns import ColumnType
from metric_core.declarations.metric import Metric, MetricRequest, Parameter, Parameters, constant
from metric_core.evidence import Evidence
from metric_core.records import Direction, Score

NEGATIVE = "below 0"
_SOURCE = "rag-assay: a column of the data"


def _is_name(value: object) -> str | None:
    return None if isinstance(value, str) and value.strip() else "the name of a column"


def _compute(request: MetricRequest, evidence: Evidence) -> Score:
    value = float(evidence.column(request.parameters["column"]))
    return Score.undefined(NEGATIVE) if value < 0 else Score.scored(value)


def _count_passages(_request: MetricRequest, evidence: Evidence) -> Score:
    return Score.scored(float(len(evidence.column(c.RETRIEVED_CONTEXTS))))


def _bounds(_parameters: Parameters) -> tuple[float, float]:
    return 0.0, inf


def _own_columns(parameters: Parameters) -> dict[str, ColumnType]:
    return {parameters["column"]: ColumnType.NUMBER}


def _declare(name: str, summary: str, *, is_known: bool = True) -> Metric:
    """Return a figure that is read from a column, by default that of its name.

    Args:
        is_known: True if the name of the column says what it holds, so that the figure is computed by default.
    """
    return Metric(
        name=name,
        summary=summary,
        source=_SOURCE,
        family="figures",
        columns=constant(),
        own_columns=_own_columns,
        products=constant(),
        compute=_compute,
        direction=Direction.LOWER,
        bounds=_bounds,
        undefined={NEGATIVE: "the number is below 0"},
        parameters={"column": Parameter(summary="column with the number", default=name, check=_is_name)},
        in_default_suite=is_known,
    )


LATENCY = _declare("latency", "Seconds that the answer took, as the data has them; lower is better.")
TOKENS = _declare("tokens", "Tokens that the answer took, as the data has them; lower is better.")
COST = _declare("cost", "Money that the answer cost, as the data has it; lower is better.")
FIGURE = _declare("figure", "The number in a column of the data; lower is better.", is_known=False)
RETRIEVED = Metric(
    name="retrieved",
    summary="Number of retrieved passages.",
    source=_SOURCE,
    family="figures",
    columns=constant(c.RETRIEVED_CONTEXTS),
    products=constant(),
    compute=_count_passages,
    direction=Direction.NEITHER,
    bounds=_bounds,
    undefined={},
    in_default_suite=False,
)
