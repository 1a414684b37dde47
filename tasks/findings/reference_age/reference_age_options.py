"""Declare the option for the column with the dates of references."""

from typing import Annotated

from tasks.options.finding_options import FindingOptions
from tasks.options.option import Option

DATES = "reference_date"
"""Column that is read if none is named, and name of the option."""


class ReferenceAgeOptions(FindingOptions, affects_scores=False):
    """The option for the dates of references."""

    reference_date: Annotated[
        str | None,
        Option(
            "Column with the day on which a reference was written or last checked, as 2024-03-01. Scores that are "
            "lower where references are older are then named. Default: reference_date, if the data have it.",
            holds="text",
            examples=["last_checked"],
        ),
    ] = None
