"""Declare the option for rows of a run that are asked about again."""

from typing import Annotated

from tasks.options.finding_options import FindingOptions
from tasks.options.option import Flag, Option


class RepeatOptions(FindingOptions, affects_scores=False):
    """The option for rows that are asked about again."""

    ask_again: Annotated[
        int,
        Option(
            "Number of rows about which verdicts and ratings are asked again, past the cache, to measure how much the "
            "judge varies. The scores stay those of the first answers. Default: 0.",
            by_run=True,
            cli=Flag(long="--ask-again", metavar="ROWS"),
            ge=0,
            examples=[60],
        ),
    ] = 0
