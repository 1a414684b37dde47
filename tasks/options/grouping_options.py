"""Declare the options that say which rows belong together, and what each row stands for."""

import math
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, Field

from tasks.options.option import Flag, Option, OptionGroup

Traffic: TypeAlias = dict[str, dict[str, float]]
"""Column -> value -> share of the traffic."""

TRAFFIC = "traffic"
"""Word for the weights that give slices their share of the traffic."""
INVERSE = "1/"
"""Start of the name of a column of probabilities."""
_ROUNDING = 0.001
"""Deviation of the sum of shares from 1 that counts as rounding."""


def check_shares(traffic: Traffic) -> Traffic:
    """Return shares of the traffic that are above 0 and sum to 1.

    Raises:
        ValueError: They do not.
    """
    for column, shares in traffic.items():
        if any(not 0 < share <= 1 for share in shares.values()):
            raise ValueError(f"shares of {column} are above 0 and at most 1")
        if not math.isclose(total := sum(shares.values()), 1, abs_tol=_ROUNDING):
            raise ValueError(f"shares of {column} sum to 1, got {total:g}")
    return traffic


class GroupingOptions(OptionGroup, affects_scores=False):
    """The options that say which rows belong together, and what each row stands for."""

    by: Annotated[
        str | None,
        Option(
            "Cluster column: rows that share a value are resampled together. Intervals, comparisons and gates of "
            "the run draw groups as a whole; rows without a value are independent. Default: session_id if rows share a "
            "session; row_id groups none.",
            holds="text",
            by_run=True,
            cli=Flag(
                long="--by",
                metavar="COLUMN",
                help="Cluster column: rows that share a value are resampled together.",
            ),
            examples=["document"],
        ),
    ] = None
    weights: Annotated[
        str | None,
        Option(
            "What each row counts in means, intervals, comparisons and gates: a column of weights; 1/COLUMN for a "
            "column with the probability that the row was drawn; or the word traffic, for the shares of the option "
            "traffic. Default: each row counts once.",
            holds="text",
            by_run=True,
            cli=Flag(long="--weights", metavar="COLUMN", help="Column of row weights, 1/COLUMN, or traffic."),
            examples=["weight", "1/probability", "traffic"],
        ),
    ] = None
    traffic: Annotated[
        Annotated[Traffic, AfterValidator(check_shares)],
        Option(
            "Share of the traffic that each value of a column has. A run whose rows have other shares says so, unless "
            "rows have weights.",
            holds="text",
            examples=[{"topic": {"billing": 0.7, "returns": 0.3}}],
        ),
    ] = Field(default_factory=dict)
