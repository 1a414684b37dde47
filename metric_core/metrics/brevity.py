"""Brevity: how short a response is, compared with the reference."""

from metric_core import columns
from metric_core.evidence import Evidence
from metric_core.metric import Metric, MetricRequest, constant
from metric_core.records import Score

_NO_WORDS = "no words in the reference"


def brevity(response: str, reference: str) -> Score:
    """Return the number of words of the reference divided by that of the response, at most 1.

    Args:
        response: Response of the RAG system.
        reference: Reference answer.

    Returns:
        A score in [0, 1], 1 for an empty response; undefined if the reference has no words.

    >>> brevity("It opens at nine in the morning.", "At nine.").value
    0.2857142857142857
    """
    wanted, written = len(reference.split()), len(response.split())
    if wanted == 0:
        return Score.undefined(_NO_WORDS)
    return Score.scored(min(1.0, wanted / written) if written else 1.0)


def _compute(_: MetricRequest, evidence: Evidence) -> Score:
    return brevity(evidence.column(columns.RESPONSE), evidence.column(columns.REFERENCE))


BREVITY = Metric(
    name="brevity",
    summary="Words of the reference per word of the response, at most 1; needs no judge.",
    source="An example",
    family="brevity",
    columns=constant(columns.RESPONSE, columns.REFERENCE),
    products=constant(),
    compute=_compute,
    undefined={_NO_WORDS: "the reference has no words"},
    in_default_suite=False,
)
