"""Declare the option that says which rows belong together."""

from typing import Annotated

from tasks.options.option import Flag, Option, OptionGroup


class GroupingOptions(OptionGroup, affects_scores=False):
    """The option that says which rows belong together."""

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
