"""Declare the option that says where key points come from."""

from typing import Annotated

from tasks.options.option import Option, OptionGroup


class KeyPointOptions(OptionGroup, affects_scores=True):
    """The option that says where key points come from."""

    write_key_points: Annotated[
        bool,
        Option(
            "Have the judge write the key points of every row that gives none, from its question and its relevant "
            "passages. Default: of rows without a reference only; those with one have its claims as key points."
        ),
    ] = False
